# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # variables of eng/lab, which sources this, and of the job
# Boots one virtual machine, returns its command's output and exit code, and ends it. Sourced by eng/lab.
#
# It uses no image, no host mount and no chroot: the guest sees the parts read-only, and a small initramfs, created per
# run, puts a memory overlay on the tree. The console contains only the kernel's messages. Every process here ends with
# eng/lab, whatever ends it (parent-death signal).
#
# An engine, uml.sh or emulated.sh, consists of five functions. ENGINE_refuse names an option that it does not support.
# ENGINE_share shares a host directory and stores the guest's name of it in guest_source. ENGINE_prepare creates what
# the machine writes to. ENGINE_start starts the machine and the readers of its output and stores their pids in machine,
# stdout and stderr; it may also store in guard the pid of a process that ends when the machine must be ended, and that
# has written the reason to the file `guard`. ENGINE_finish lets the readers finish once the machine has ended.

# Creates the archive with the guest's first program, its job and a shell to run them, which the kernel unpacks into
# memory.
make_initramfs() {
    local tree=$1
    mkdir initramfs
    cp "$vm/guest-init" initramfs/init
    cp "$vm/guest-session" initramfs/
    cp "$tree/bin/busybox" initramfs/busybox
    mv job names initramfs/
    (cd initramfs && find . | ./busybox cpio -o -H newc >../initramfs.cpio 2>/dev/null)
    rm -r initramfs
}

# share SOURCE MODE DIRECTORY: shares a directory of the host with the guest, which may write if the mode is rw.
share() {
    local guest_source
    "${engine}_share" "$1" "$2"
    guest_shares+=("$guest_source:$2:$3")
}

# Reads eng/lab's variables: cell, userland, kernel, engine, command, shares, out, variables, cpus, memory, forwards,
# instruction_count, tls_module, profiler, runtime, append, time_limit. Runs in the run directory. Stores the result in
# exit_code.
run_machine() {
    local tree kernel_dir entry machine stdout stderr guard= timer ended status
    local directory=/tmp guest_shares=() guest_network=no parts=$lab/parts results=$run_dir/results
    local kernel_arguments="loglevel=5 panic=-1 oops=panic $append"
    [[ $tls_module == yes ]] || kernel_arguments+=' module_blacklist=tls'
    tree=$(part_dir "tree-$userland") kernel_dir=$(kernel_part_dir)

    for entry in "${shares[@]}"; do
        share "${entry%%:*}" ro "${entry#*:}"
        [[ ${entry#*:} != /repo ]] || directory=/repo
    done
    # Programs are built for .NET 10.
    [[ $runtime == 10 ]] || variables=(DOTNET_ROLL_FORWARD=LatestMajor "${variables[@]}")
    # The tests end at once if another OpenSSL is used.
    [[ $userland != openssl4 ]] || variables=(KTLS_OPENSSL=4 "${variables[@]}")
    [[ $profiler == no ]] || share "$(part_dir profiler)/root" ro /run/profiler
    [[ -z $out ]] || share "$out" rw /out
    ((${#forwards[@]} == 0)) || guest_network=yes
    "${engine}_prepare"

    # For guest-init, whose shell has no arrays, and for guest-session.
    {
        printf '%s=%q\n' engine "$engine" parts "$parts"
        printf '%s=%s\n' tree "${tree##*/}" kernel "${kernel_dir##*/}" runtime "$(basename "$(part_dir "$(runtime_part)")")"
    } >names
    declare -p cell engine directory results tls_module profiler guest_shares guest_network command variables >job
    make_initramfs "$tree"

    "${engine}_start"
    start sleep "$time_limit"
    timer=$last_pid
    exit_code=
    while true; do
        status=0
        wait -n -p ended "$machine" "$timer" ${guard:+"$guard"} ${stdout:+"$stdout"} ${stderr:+"$stderr"} 2>/dev/null ||
            status=$?
        case $ended in
            "$machine") break ;;
            "$timer")
                say "time limit of $time_limit s reached: the machine was ended"
                ! has_begun || exit_code=124
                break
                ;;
            "$guard")
                guard=
                [[ -s guard ]] || continue
                say "$(<guard): the machine was ended, because it would hang. Let the command use less memory."
                exit_code=125
                break
                ;;
            "$stdout") stdout= ;;
            "$stderr") stderr= ;;
        esac
        # A reader that failed lost its consumer (… | head -1): end as any command would.
        if ((status != 0)); then
            exit_code=$status
            break
        fi
    done
    stop "$timer" ${guard:+"$guard"} "$machine"
    "${engine}_finish"
    wait ${stdout:+"$stdout"} ${stderr:+"$stderr"} 2>/dev/null || true
    report_kernel
    [[ -n $exit_code ]] || exit_code=$(sed -n 's/^exit //p' "$results/result" 2>/dev/null) || true
    [[ -n $exit_code ]] || report_end
}

# Prints the part that contains the kernel's modules.
kernel_part_dir() {
    case $engine in
        uml) part_dir "uml-$kernel" ;;
        emulated) part_dir "kernel-$kernel" ;;
    esac
}

has_begun() { grep -aqs 'guest-session: the command begins' console; }

# A machine that never began its command says nothing about the command: the host or the kernel is at fault.
report_end() {
    if has_begun; then
        say "the machine ended without a result; its last words:"
    else
        say "the machine did not boot: the command never began, and nothing is known of it; the machine's last words:"
    fi
    { tail -n 30 console 2>/dev/null | tr -d '\r'; cat ./*.log 2>/dev/null; } | sed 's/^/  /' >&2
    exit_code=125
}

# A kernel error is part of the result, even if the command completed.
report_kernel() {
    local first
    first=$(grep -anE -m1 'Kernel panic|Oops|BUG:|WARNING: |general protection' console 2>/dev/null | cut -d: -f1) || true
    [[ -n $first ]] || return 0
    say "the guest's kernel complained:"
    tail -n "+$((first > 1 ? first - 1 : first))" console | tr -d '\r' | head -n 80 | sed 's/^/  /' >&2
    # oops=panic: after any of these the machine has ended, and the result is lost.
    if grep -aqE 'Kernel panic|Oops' console; then
        exit_code=125
    fi
}
