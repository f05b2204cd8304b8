# shellcheck shell=bash
# shellcheck disable=SC2154,SC2054 # variables of eng/lab, which sources this; commas are qemu's
# Boots one virtual machine, hands its command's output and exit code back, and ends it. Sourced by eng/lab.
#
# No image, no host mount, no chroot: virtiofsd shares the parts directory read-only, a small initramfs made per run
# puts a memory overlay on the tree, and output leaves through virtio-serial ports, so that the console holds the
# kernel's words only. Every process here dies with eng/lab, whatever ends it (parent-death signal).

# Runs a program of the engine part by its own dynamic loader, whatever libc the host has:
#   engine NAME PATH arguments…
# engine_command only leaves the command line in the array of that name.
engine() {
    engine_command "$@"
    "${engine_command[@]}"
}

engine_command() {
    local name=$1 path=$2 root
    root=$(part_dir engine)/root
    shift 2
    engine_command=("$root/usr/lib64/ld-linux-x86-64.so.2" --argv0 "$name"
        --library-path "$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu" "$root/usr/$path" "$@")
}

# Starts one virtiofsd: serve TAG DIRECTORY arguments…
file_servers=()
qemu_shares=()
serve() {
    local tag=$1 directory=$2
    shift 2
    # Relative socket names: a long lab path must not meet the 108 bytes of a socket address.
    engine_command virtiofsd libexec/virtiofsd --socket-path="$tag.socket" --shared-dir="$directory" --sandbox=none "$@"
    start "${engine_command[@]}" &>"$tag.log"
    file_servers+=("$last_pid")
    qemu_shares+=(-chardev "socket,id=$tag,path=$tag.socket" -device "vhost-user-fs-pci,chardev=$tag,tag=$tag")
}

# By its own words: the file is there a moment before anybody listens on it.
await_socket() {
    local tag=$1 attempt
    for ((attempt = 0; attempt < 200; attempt++)); do
        ! grep -qs 'Waiting for vhost-user socket connection' "$tag.log" || return 0
        sleep 0.02
    done
    cat "$tag.log" >&2
    fail "virtiofsd for '$tag' did not start within 4 s"
}

# The guest's first program, its job and a shell to run them, as an archive the kernel unpacks into memory.
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

# Reads eng/lab's variables: cell, userland, kernel, command, shares, out, variables, cpus, memory, forwards,
# instruction_count, tls_module, profiler, append, time_limit. Runs in the run directory. Leaves the result in exit_code.
run_machine() {
    local tree kernel_dir parts index share qemu timer stdout stderr ended status qemu_arguments=()
    # Read by declare -p below.
    # shellcheck disable=SC2034
    local directory=/tmp guest_shares=() guest_network=no tag entry
    tree=$(part_dir "tree-$userland") kernel_dir=$(part_dir "kernel-$kernel") parts=$lab/parts

    serve parts "$parts" --readonly --cache=always
    for index in "${!shares[@]}"; do
        share=${shares[index]}
        serve "share$index" "${share%%:*}" --readonly --cache=auto
        guest_shares+=("share$index:ro:${share#*:}")
        [[ ${share#*:} != /repo ]] || directory=/repo
    done
    if [[ $profiler == yes ]]; then
        serve profiler "$(part_dir profiler)/root" --readonly --cache=always
        guest_shares+=("profiler:ro:/run/profiler")
    fi
    if [[ -n $out ]]; then
        serve out "$out" --cache=auto
        guest_shares+=("out:rw:/out")
    fi

    qemu_arguments=(
        -nodefaults -no-user-config -display none -no-reboot -parallel none -monitor none
        -L "$(part_dir engine)/root/usr/share/qemu" -L "$(part_dir engine)/root/usr/share/seabios"
        -machine pc,memory-backend=memory -m "$memory" -object "memory-backend-memfd,id=memory,size=${memory}M,share=on"
        -kernel "$kernel_dir/kernel" -initrd initramfs.cpio
        -append "console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off$([[ $tls_module == yes ]] || echo ' module_blacklist=tls') $append"
        -chardev file,id=console,path=console -serial chardev:console
        -device virtio-serial-pci
        -chardev file,id=stdout,path=stdout -device virtserialport,chardev=stdout,name=stdout
        -chardev file,id=stderr,path=stderr -device virtserialport,chardev=stderr,name=stderr
        -chardev file,id=result,path=result -device virtserialport,chardev=result,name=result
        "${qemu_shares[@]}"
    )
    if [[ $instruction_count == yes ]]; then
        # One guest nanosecond is one instruction; without erms and fsrm string copies count as what they cost.
        qemu_arguments+=(-smp 1 -accel tcg,thread=single -icount 'shift=0,sleep=off' -cpu 'max,-erms,-fsrm')
    else
        qemu_arguments+=(-smp "$cpus" -accel tcg,thread=multi -cpu max)
    fi
    if ((${#forwards[@]} > 0)); then
        guest_network=yes
        qemu_arguments+=(-netdev "user,id=network$(printf ',hostfwd=tcp:127.0.0.1:%s' "${forwards[@]/:/-:}")"
            -device virtio-net-pci,netdev=network,romfile=)
    fi

    # For guest-init, whose shell knows no arrays, and for guest-session.
    printf '%s=%s\n' tree "${tree##*/}" kernel "${kernel_dir##*/}" runtime "$(basename "$(part_dir runtime)")" >names
    declare -p cell directory tls_module profiler guest_shares guest_network command variables >job
    make_initramfs "$tree"

    mkfifo stdout stderr
    # A reader per stream: a slow consumer slows the guest down and loses nothing.
    start cat stdout
    stdout=$last_pid
    start cat stderr >&2
    stderr=$last_pid
    for entry in "${qemu_shares[@]}"; do
        [[ $entry != socket,* ]] || { tag=${entry##*path=} && await_socket "${tag%.socket}"; }
    done
    engine_command qemu-system-x86_64 bin/qemu-system-x86_64 "${qemu_arguments[@]}"
    start "${engine_command[@]}" </dev/null &>qemu.log
    qemu=$last_pid
    start sleep "$time_limit"
    timer=$last_pid

    exit_code=
    while true; do
        status=0
        wait -n -p ended "$qemu" "$timer" ${stdout:+"$stdout"} ${stderr:+"$stderr"} 2>/dev/null || status=$?
        case $ended in
            "$qemu") break ;;
            "$timer")
                say "time limit of $time_limit s reached: the machine was ended"
                exit_code=124
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
    stop "$timer" "$qemu"
    # Opening both ways never blocks, and closing it again ends a reader whose writer never came.
    : <>stdout <>stderr
    wait ${stdout:+"$stdout"} ${stderr:+"$stderr"} 2>/dev/null || true
    report_kernel
    [[ -n $exit_code ]] || exit_code=$(sed -n 's/^exit //p' result 2>/dev/null) || true
    if [[ -z $exit_code ]]; then
        say "the machine ended without a result; its last words:"
        { tail -n 30 console 2>/dev/null | tr -d '\r'; cat ./*.log; } | sed 's/^/  /' >&2
        exit_code=125
    fi
}

# A kernel's complaint is part of the outcome, even when the command got through.
report_kernel() {
    local first
    first=$(grep -anE -m1 'Kernel panic|Oops|BUG:|WARNING: |general protection' console 2>/dev/null | cut -d: -f1) || true
    [[ -n $first ]] || return 0
    say "the guest's kernel complained:"
    tail -n "+$((first > 1 ? first - 1 : first))" console | tr -d '\r' | head -n 80 | sed 's/^/  /' >&2
    # oops=panic: after any of these the machine is gone, and with it the result.
    if grep -aqE 'Kernel panic|Oops' console; then
        exit_code=125
    fi
}
