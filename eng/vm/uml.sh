# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # variables of eng/lab and of machine.sh
# The engine `uml`: User-Mode Linux, the kernel as a program of this machine. Kernel and programs run at nearly native
# speed, any user can start it, and there is one processor. Its system calls are slow and its kernel has no AES
# instructions, so its measurements are meaningless. Sourced by eng/lab; machine.sh documents its functions.
#
# hostfs shares directories with the guest by their paths. Output passes through files, which hostfs writes immediately.

uml_refuse() {
    local instead="; use an emulated cell: eng/lab --list"
    [[ $instruction_count == no ]] || wrong_usage "--instruction-count: $cell counts no instructions$instead"
    [[ $profiler == no ]] || wrong_usage "--profiler: $cell measures nothing$instead"
    ((${#forwards[@]} == 0)) || wrong_usage "--forward: $cell has no network but its loopback$instead"
    [[ -z $cpus ]] || ((cpus == 1)) || wrong_usage "--cpus: $cell has one processor, not $cpus$instead"
}

uml_share() {
    # hostfs takes its directory as a mount option.
    [[ $1 != *,* ]] || fail "'$1' has a comma in its path, which $cell cannot show to the guest" 2
    guest_source=$1
}

uml_prepare() {
    [[ $lab != *[,\ ]* ]] || fail "'$lab' has a comma or a space in its path: name another place with KERNELTLS_LAB=DIR" 2
    mkdir "$results"
    : >"$results/stdout"
    : >"$results/stderr"
    mkfifo console.pipe
}

# claim_memory: chooses a directory that can hold the machine's memory, a file that grows as it is used, and stores it
# in memory_directory. If the file did not fit, the machine would be killed by SIGBUS later, so the memory that the
# running machines may still take counts as used. Called with the run directories locked.
claim_memory() {
    local directory claim claimed free candidates=(/dev/shm "${TMPDIR:-/tmp}" "$lab") looked_at=()
    [[ -z ${KERNELTLS_MEMORY:-} ]] || candidates=("$KERNELTLS_MEMORY")
    for directory in "${candidates[@]}"; do
        if [[ ! -d $directory || ! -w $directory ]]; then
            looked_at+=("$directory: not a directory one can write to")
            continue
        elif [[ ,$(findmnt --noheadings --output OPTIONS --target "$directory"), == *,noexec,* ]]; then
            looked_at+=("$directory: mounted noexec")
            continue
        fi
        claimed=0
        for claim in "$lab"/run/*/memory; do
            [[ ! -e $claim || $(<"$claim") != *" $directory" ]] || ((claimed += $(cut -d' ' -f1 "$claim"))) || true
        done
        free=$(df --output=avail -m "$directory" | tail -1 | tr -d ' ')
        if ((free >= claimed + memory)); then
            echo "$memory $directory" >"$run_dir/memory"
            memory_directory=$directory
            return 0
        fi
        looked_at+=("$directory: $free MB free, of which running machines may take $claimed")
    done
    fail "no directory has room for the machine's $memory MB of memory ($(printf '%s; ' "${looked_at[@]}" | sed 's/; $//')): give it less (--memory MIB), or name a directory with KERNELTLS_MEMORY=DIR" 2
}

uml_start() {
    local image=$kernel_dir/root/usr/bin/linux.uml words
    read -ra words <<<"$kernel_arguments"
    start sh -c 'exec cat <console.pipe >console'
    start env TMPDIR="$memory_directory" "$image" mem="${memory}M" initrd="$run_dir/initramfs.cpio" root=/dev/ram0 \
        seccomp=on umid=uml uml_dir="$run_dir/" con=null con0=null,fd:1 console=tty0 "${words[@]}" \
        </dev/null &>console.pipe
    machine=$last_pid
    start tail --quiet --pid="$machine" --sleep-interval=0.1 --bytes=+1 --follow "$results/stdout"
    stdout=$last_pid
    start tail --quiet --pid="$machine" --sleep-interval=0.1 --bytes=+1 --follow "$results/stderr" >&2
    stderr=$last_pid
    start "$vm/mapping-guard" "$machine" >guard
    guard=$last_pid
}

uml_finish() { :; }
