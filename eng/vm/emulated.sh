# shellcheck shell=bash
# shellcheck disable=SC2154,SC2054,SC2034 # variables of eng/lab and of machine.sh; commas are qemu's
# The engine `emulated`: qemu emulates a machine, which boots the distribution's own kernel. It can count instructions,
# has several processors, and forwards ports. Sourced by eng/lab; machine.sh documents its functions.
#
# virtiofsd shares directories with the guest. Output passes through virtio-serial ports into FIFOs.

qemu_shares=()

emulated_refuse() { :; }

emulated_share() {
    guest_source=share$((${#qemu_shares[@]} / 4))
    serve "$guest_source" "$1" --cache=auto "$([[ $2 == rw ]] || echo --readonly)"
}

# serve TAG DIRECTORY ARGUMENT…: starts one virtiofsd. Its last argument may be empty.
serve() {
    local tag=$1 directory=$2 arguments=("${@:3}")
    [[ -n ${arguments[-1]} ]] || unset 'arguments[-1]'
    # Relative socket names: a long lab path could exceed the 108 bytes of a socket address.
    unpacked_command "$(part_dir qemu)/root" virtiofsd libexec/virtiofsd \
        --socket-path="$tag.socket" --shared-dir="$directory" --sandbox=none "${arguments[@]}"
    start "${unpacked_command[@]}" &>"$tag.log"
    qemu_shares+=(-chardev "socket,id=$tag,path=$tag.socket" -device "vhost-user-fs-pci,chardev=$tag,tag=$tag")
}

# Waits for its own message: the file exists a moment before it listens.
await_socket() {
    local tag=$1 attempt
    for ((attempt = 0; attempt < 500; attempt++)); do
        ! grep -qs 'Waiting for vhost-user socket connection' "$tag.log" || return 0
        sleep 0.02
    done
    cat "$tag.log" >&2
    fail "virtiofsd for '$tag' did not start within 10 s"
}

emulated_prepare() {
    serve parts "$lab/parts" --cache=always --readonly
    mkdir "$results"
    mkfifo stdout stderr
}

emulated_start() {
    local entry tag qemu qemu_arguments root
    root=$(part_dir qemu)/root
    # One reader per stream: a slow consumer slows the guest down and loses nothing.
    start cat stdout
    stdout=$last_pid
    start cat stderr >&2
    stderr=$last_pid
    # A busy host delivers the emulated timer's ticks in bursts. The kernel would conclude that the timer does not work
    # and panic, or that the TSC is unstable, although both are only late
    # (Documentation/admin-guide/kernel-parameters.txt: no_timer_check, tsc=reliable).
    kernel_arguments="no_timer_check $kernel_arguments"
    [[ $instruction_count == yes ]] || kernel_arguments="tsc=reliable $kernel_arguments"
    qemu_arguments=(
        -nodefaults -no-user-config -display none -no-reboot -parallel none -monitor none
        -L "$root/usr/share/qemu" -L "$root/usr/share/seabios"
        -machine pc,memory-backend=memory -m "$memory" -object "memory-backend-memfd,id=memory,size=${memory}M,share=on"
        -kernel "$kernel_dir/kernel" -initrd initramfs.cpio
        -append "console=ttyS0 mitigations=off $kernel_arguments"
        -chardev file,id=console,path=console -serial chardev:console
        -device virtio-serial-pci
        -chardev file,id=stdout,path=stdout -device virtserialport,chardev=stdout,name=stdout
        -chardev file,id=stderr,path=stderr -device virtserialport,chardev=stderr,name=stderr
        -chardev "file,id=result,path=results/result" -device virtserialport,chardev=result,name=result
        "${qemu_shares[@]}"
    )
    if [[ $instruction_count == yes ]]; then
        # One guest nanosecond is one instruction. Without erms and fsrm string copies count by their actual cost.
        qemu_arguments+=(-smp 1 -accel tcg,thread=single -icount 'shift=0,sleep=off' -cpu 'max,-erms,-fsrm')
    else
        qemu_arguments+=(-smp "${cpus:-2}" -accel tcg,thread=multi -cpu max)
    fi
    if [[ $guest_network == yes ]]; then
        qemu_arguments+=(-netdev "user,id=network$(printf ',hostfwd=tcp:127.0.0.1:%s' "${forwards[@]/:/-:}")"
            -device virtio-net-pci,netdev=network,romfile=)
    fi
    for entry in "${qemu_shares[@]}"; do
        [[ $entry != socket,* ]] || { tag=${entry##*path=} && await_socket "${tag%.socket}"; }
    done
    unpacked_command "$root" qemu-system-x86_64 bin/qemu-system-x86_64 "${qemu_arguments[@]}"
    start "${unpacked_command[@]}" </dev/null &>qemu.log
    machine=$last_pid
}

emulated_finish() {
    # Opening for both directions never blocks, and closing it again ends a reader whose writer never came.
    : <>stdout <>stderr
}
