# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of eng/lab, which sources this
# Builds the parts a cell is made of. Sourced by eng/lab, which provides the variables lab and vm and the functions
# say, fail and supervise.
#
#   engine         qemu and virtiofsd of Debian 13, unpacked and never installed
#   kernel-6.12    a kernel image and its modules, likewise
#   tree-trixie    a userland, made by debootstrap
#   runtime        the host's .NET runtime, without the SDK
#   profiler       perf of Debian 13, unpacked; only where a run asks for it
#
# A part lies in $lab/parts/NAME@KEY, where KEY is a hash of everything that went into it, and never changes
# once it has that name: a new recipe makes a new part beside it, and machines that run on the old one go on.

# qemu of Debian 12 (7.2) corrupts flags in its cmpxchg16b, so that guests panic: the engine is always this suite's.
engine_suite=trixie
archive_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Prints the parts of a userland and a kernel, one per line.
parts_of() {
    local userland=$1 kernel=$2
    printf '%s\n' engine "kernel-$kernel" "tree-$userland" runtime
    [[ ${profiler:-no} == no ]] || echo profiler
}

# Prints the directory of a part. The functions that build it are part of the key, comments excepted.
part_dir() {
    local part=$1 key
    key=$({
        echo "$part $engine_suite"
        case $part in
            engine) declare -f build_engine unpack_packages ;;
            kernel-*) declare -f build_kernel decompress_kernel unpack_packages ;;
            tree-*) declare -f build_tree && package_list ;;
            runtime) declare -f build_runtime && runtime_versions ;;
            profiler) declare -f build_profiler unpack_packages ;;
        esac
    } | sha256sum)
    echo "$lab/parts/$part@${key:0:12}"
}

package_list() {
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$vm/packages" | sort
}

host_dotnet_dir() {
    local program=${DOTNET_ROOT:-}/dotnet
    [[ -n ${DOTNET_ROOT:-} && -x $program ]] || program=$(command -v dotnet)
    dirname "$(readlink -f "$program")"
}

runtime_versions() {
    (cd "$(host_dotnet_dir)" && ls -d host/fxr/* shared/*/*)
}

# Builds a part unless it is there. Only one process per lab gets here at a time: eng/lab holds the setup lock.
build_part() {
    local part=$1 target work began=$SECONDS
    target=$(part_dir "$part")
    [[ ! -d $target ]] || return 0
    require_disk
    # Whatever an interrupted build left; its processes died with it.
    rm -rf "$lab/parts/.building"
    work=$lab/parts/.building
    mkdir -p "$work" "$lab/logs"
    case $part in
        engine) build_engine "$work" ;;
        kernel-*) build_kernel "$work" "${part#kernel-}" ;;
        tree-*) build_tree "$work" "${part#tree-}" ;;
        runtime) build_runtime "$work" ;;
        profiler) build_profiler "$work" ;;
    esac
    mv "$work" "$target"
    say "$part is ready ($((SECONDS - began)) s, $(du -sm "$target" | cut -f1) MB)"
    remove_older "$part" "$target"
}

require_disk() {
    local free
    free=$(df --output=avail -m "$lab" | tail -1 | tr -d ' ')
    ((free >= 3072)) || fail "setup needs 3 GB free at $lab and finds $free MB: make room, or name another place with KERNELTLS_LAB=DIR eng/lab …" 2
}

# Runs one download or unpack step: its output into a log, a time limit, and one retry.
step() {
    local seconds=$1 title=$2 log attempt
    shift 2
    log=$lab/logs/${title//[^a-z0-9.]/-}.log
    for attempt in 1 2; do
        say "$title$([[ $attempt == 1 ]] || echo ' (second try)')"
        # Own mount and process namespaces: no mount and no process of a step outlives it.
        if supervise "$seconds" unshare --mount --pid --fork --kill-child --mount-proc "$@" &>"$log"; then
            return 0
        fi
    done
    tail -n 20 "$log" >&2
    fail "$title failed twice; the whole log is $log"
}

# ---- packages without installing them ----

# The archive the machine itself uses, else debootstrap's own default.
archive() {
    local release uri
    # shellcheck source=/dev/null
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    # The quoted $(…) are apt's own format words.
    # shellcheck disable=SC2016
    uri=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -v release="$release" '$1 == release && $2 == "main" && $3 ~ /\/debian\/?$/ { print $3; exit }') || true
    echo "${uri:-$(sed -n 's/^DEF_MIRROR="\(.*\)"$/\1/p' "$(command -v debootstrap)")}"
}

# Writes an apt configuration that knows the engine's suite and believes nothing is installed: asked for a package,
# it names everything needed to run it. Removed with close_feed at the end of a setup, for the indexes are large.
open_feed() {
    local feed=$lab/feed suite
    [[ ! -e $feed/ready ]] || return 0
    rm -rf "$feed"
    mkdir -p "$feed/state/lists/partial" "$feed/cache/archives/partial"
    : >"$feed/status"
    for suite in "$engine_suite" "$engine_suite-backports"; do
        echo "deb [arch=amd64 signed-by=$archive_keyring] $(archive) $suite main"
    done >"$feed/sources.list"
    cat >"$feed/apt.conf" <<EOT
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear APT::Architectures;
APT::Architecture "amd64";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Dir::State "$feed/state";
Dir::State::status "$feed/status";
Dir::Cache "$feed/cache";
Dir::Etc::sourcelist "$feed/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
EOT
    step 90 "package indexes of $engine_suite" apt-get -q -c "$feed/apt.conf" update
    touch "$feed/ready"
}

close_feed() {
    rm -rf "$lab/feed"
}

# Downloads with one apt-get command line and unpacks what came into a directory. No maintainer script runs.
unpack_packages() {
    local work=$1 title=$2 package
    shift 2
    mkdir "$work/debs"
    mkdir "$work/debs/partial"
    step 120 "download $title" env --chdir="$work/debs" \
        apt-get -qy -c "$lab/feed/apt.conf" -o Dir::Cache::archives="$work/debs" "$@"
    for package in "$work"/debs/*.deb; do
        dpkg-deb -x "$package" "$work/root" || fail "cannot unpack $package"
    done
    rm -rf "$work/debs"
}

build_engine() {
    local work=$1
    open_feed
    # kmod and the decompressors prepare the kernels.
    unpack_packages "$work" "qemu and virtiofsd of $engine_suite" \
        install --download-only qemu-system-x86 virtiofsd seabios kmod xz-utils zstd
    # Of firmware for other machines, documentation and languages nothing is used.
    find "$work/root/usr/share" -mindepth 1 -maxdepth 1 ! -name qemu ! -name seabios -exec rm -rf {} +
    find "$work/root/usr/share/qemu" -type f ! -name pvh.bin ! -name 'linuxboot*.bin' ! -name kvmvapic.bin -delete
    rm -rf "$work/root/usr/lib/x86_64-linux-gnu/qemu" "$work/root/usr/lib/x86_64-linux-gnu/gconv"
}

# Runs in every userland, by its own loader and libraries; perf is not bound to the kernel it was made for.
build_profiler() {
    local work=$1
    open_feed
    unpack_packages "$work" "perf of $engine_suite" install --download-only linux-perf
    rm -rf "$work"/root/usr/{share,lib/python3*,lib/x86_64-linux-gnu/{gconv,perl,perl-base}}
}

build_kernel() {
    local work=$1 series=$2 version package packages=()
    open_feed
    # The cloud kernels have virtio_pci, virtiofs and virtio_console built in, so that no driver is needed to boot.
    version=$(apt-cache -c "$lab/feed/apt.conf" pkgnames linux-image- |
        sed -nE "s/^linux-image-(${series//./\\.}[.0-9]*[^-]*-cloud-amd64)\$/\\1/p" | sort -V | tail -1)
    [[ -n $version ]] || fail "the archive has no $series cloud kernel for $engine_suite"
    # From 7.x on the kernel is split over several packages.
    for package in "linux-image-$version" "linux-binary-$version" "linux-modules-$version" "linux-base-$version"; do
        if apt-cache -c "$lab/feed/apt.conf" show "$package" &>/dev/null; then packages+=("$package"); fi
    done
    unpack_packages "$work" "kernel $version" download "${packages[@]}"
    decompress_kernel "$(find "$work/root" -name 'vmlinuz*' -type f | head -1)" "$work/kernel"
    mv "$(find "$work/root" -path "*/lib/modules/$version" -type d | head -1)" "$work/modules"
    rm -rf "$work/root"
    mkdir -p "$work/lib/modules" && mv "$work/modules" "$work/lib/modules/$version"
    echo "$version" >"$work/version"
    engine depmod bin/kmod -b "$work" "$version" || fail "depmod failed for kernel $version"
}

# A kernel that need not unpack itself starts two seconds sooner under emulation. The compressed part's place is in
# the setup header (Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length).
decompress_kernel() {
    local image=$1 target=$2 sectors offset length
    sectors=$(od -An -tu1 -j $((0x1f1)) -N1 "$image")
    offset=$(((sectors + 1) * 512 + $(od -An -tu4 -j $((0x248)) -N4 "$image")))
    # The last four bytes hold the unpacked size and are no part of the stream.
    length=$(($(od -An -tu4 -j $((0x24c)) -N4 "$image") - 4))
    case $(od -An -tx1 -j "$offset" -N4 "$image") in
        *"28 b5 2f fd") engine_command zstd bin/zstd -dcq ;;
        *"fd 37 7a 58") engine_command xz bin/xz -dcq ;;
        *) cp "$image" "$target" && return ;;
    esac
    head -c "$((offset + length))" "$image" | tail -c "$length" | "${engine_command[@]}" >"$target" ||
        fail "cannot unpack the kernel image"
}

# ---- userlands ----

build_tree() {
    local work=$1 suite=$2 include script=()
    include=$(package_list | paste -sd,)
    # Older releases of debootstrap do not know the newest suites, which are made like sid.
    [[ -e /usr/share/debootstrap/scripts/$suite ]] || script=(/usr/share/debootstrap/scripts/sid)
    eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
    [[ -z ${http_proxy:-} ]] || export http_proxy
    [[ -z ${https_proxy:-} ]] || export https_proxy
    # A second try starts from an empty directory.
    # shellcheck disable=SC2016
    step 240 "debootstrap $suite" bash -c 'rm -rf "$2" && exec debootstrap --variant=minbase --include="$0" "$@"' \
        "$include" "$suite" "$work" "$(archive)" "${script[@]}"
    # Indexes and documentation are most of a fresh tree, and no test reads them.
    rm -rf "$work"/var/{cache/apt,lib/apt/lists,log}/* "$work"/usr/share/{doc,man,info,locale}/*
    # Where the guest mounts the kernel's modules and the .NET runtime.
    mkdir -p "$work"/usr/{lib/modules,share/dotnet}
    ln -s ../share/dotnet/dotnet "$work/usr/bin/dotnet"
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$work/etc/hosts"
    : >"$work/etc/resolv.conf"
}

build_runtime() {
    local work=$1 source
    source=$(host_dotnet_dir)
    say "copy the .NET runtime of $source"
    cp -a "$source/dotnet" "$source/host" "$source/shared" "$work/"
}

# ---- room ----

# Of a part's older versions the one used last stays, for the checkout beside this one may still ask for it.
remove_older() {
    local part=$1 current=$2 dir kept=0
    while read -r dir; do
        [[ $dir != "$current" ]] || continue
        if ((kept++ > 0)); then remove_part "$dir"; fi
    done < <(ls -dt "$lab/parts/$part@"* 2>/dev/null)
}

# Removes a part that no machine runs on; returns 1 when one does.
remove_part() {
    local dir=$1 fd
    exec {fd}<"$dir"
    if ! flock --exclusive --nonblock "$fd"; then
        exec {fd}<&-
        say "$(basename "$dir") is in use and stays"
        return 1
    fi
    # Renamed first: nobody finds half a part.
    rm -rf "$lab/parts/.removed"
    mv "$dir" "$lab/parts/.removed"
    rm -rf "$lab/parts/.removed"
    exec {fd}<&-
}
