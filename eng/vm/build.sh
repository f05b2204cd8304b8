# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of eng/lab, which sources this
# Builds the parts of a cell. Sourced by eng/lab, which provides the variables lab and vm and the functions say, fail
# and supervise.
#
#   qemu           qemu and virtiofsd of Debian 13, for emulated cells
#   kernel-6.12    a kernel image of the distribution and its modules, for emulated cells
#   uml-6.12       the same kernel series as a program (User-Mode Linux), with its modules and the libc that it needs
#   tree-trixie    a userland
#   tree-openssl4  Debian 13 in which .NET finds OpenSSL 4 and no other
#   runtime        the host's .NET runtime, without the SDK
#   runtime-11     a newer .NET runtime, from its NuGet packages
#   profiler       perf of Debian 13, only for runs that request it
#   musl           musl and the libraries that .NET needs on it (musl.sh), for programs of this machine
#
# Everything but the runtimes and musl's libraries comes from Debian's packages, which are unpacked and never installed: no maintainer script
# runs, nothing is mounted, and an ordinary user can do it as well as root.
#
# A part is stored in $lab/parts/NAME@KEY, where KEY is a hash of all its inputs, and never changes once it has that
# name. A new recipe makes a new part beside it, and machines that run on the old one continue.

# qemu of Debian 12 (7.2) corrupts flags in its cmpxchg16b, so that guests panic. The tools are therefore always from
# this suite.
tools_suite=trixie
archive_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Prints the parts of a userland, a kernel and an engine, one per line.
parts_of() {
    local userland=$1 kernel=$2 engine=$3
    case $engine in
        uml) echo "uml-$kernel" ;;
        emulated) printf '%s\n' qemu "kernel-$kernel" ;;
    esac
    [[ $userland != openssl4 ]] || echo tree-trixie
    printf '%s\n' "tree-$userland" "$(runtime_part)"
    [[ ${profiler:-no} == no ]] || echo profiler
}

# Prints the part that contains the .NET runtime of a run.
runtime_part() {
    [[ ${runtime:-10} == 10 ]] && echo runtime || echo "runtime-$runtime"
}

# Prints the directory of a part. The functions that build it are part of the key, comments excepted.
part_dir() {
    local part=$1 key
    key=$({
        echo "$part $tools_suite"
        case $part in
            qemu) declare -f build_qemu unpack_packages ;;
            kernel-*) declare -f build_kernel kernel_suite decompress_kernel unpack_packages ;;
            # The loader's path is written into the program.
            uml-*) declare -f build_uml uml_suite unpack_packages && echo "$lab" ;;
            tree-openssl4) declare -f build_openssl4_tree unpack_packages && part_dir tree-trixie ;;
            tree-*) declare -f build_tree add_conflicting configure_tree unpack_packages && package_list ;;
            runtime) declare -f build_runtime && runtime_versions ;;
            runtime-*) declare -f build_packaged_runtime runtime_version ;;
            profiler) declare -f build_profiler unpack_packages ;;
            musl) declare -f build_musl fetch_musl_sources build_musl_gcc build_musl_openssl && cat "$vm/musl-unwind.c" && gcc -dumpfullversion ;;
        esac
    } | sha256sum)
    echo "$lab/parts/$part@${key:0:12}"
}

package_list() {
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$vm/packages" | sort
}

# unpacked ROOT NAME PATH ARGUMENT…: runs a program of unpacked packages with its own dynamic loader, independent of the
# host's libc. In lib64 the loader may be a link to the host's. unpacked_command only stores the command line in the
# array of that name.
unpacked() {
    unpacked_command "$@"
    "${unpacked_command[@]}"
}

unpacked_command() {
    local root=$1 name=$2 path=$3
    shift 3
    unpacked_command=("$root/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" --argv0 "$name"
        --library-path "$root/usr/lib/x86_64-linux-gnu" "$root/usr/$path" "$@")
}

host_dotnet_dir() {
    local program=${DOTNET_ROOT:-}/dotnet
    [[ -n ${DOTNET_ROOT:-} && -x $program ]] || program=$(command -v dotnet)
    dirname "$(readlink -f "$program")"
}

runtime_versions() {
    (cd "$(host_dotnet_dir)" && ls -d host/fxr/* shared/*/*)
}

# Builds a part if it does not exist. eng/lab holds the setup lock, so only one process per lab runs this at a time.
build_part() {
    local part=$1 target work began=$SECONDS
    target=$(part_dir "$part")
    [[ ! -d $target ]] || return 0
    require_disk
    # Removes the remains of an interrupted build, whose processes ended with it.
    rm -rf "$lab/parts/.building"
    work=$lab/parts/.building
    mkdir -p "$work" "$lab/logs"
    case $part in
        qemu) build_qemu "$work" ;;
        kernel-*) build_kernel "$work" "${part#kernel-}" ;;
        uml-*) build_uml "$work" "${part#uml-}" "$target" ;;
        tree-openssl4) build_openssl4_tree "$work" ;;
        tree-*) build_tree "$work" "${part#tree-}" ;;
        runtime) build_runtime "$work" ;;
        runtime-*) build_packaged_runtime "$work" "${part#runtime-}" ;;
        profiler) build_profiler "$work" ;;
        musl) build_musl "$work" ;;
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

# Runs one download step with its output in a log, a time limit, and one retry.
step() {
    local seconds=$1 title=$2 log attempt
    shift 2
    log=$lab/logs/${title//[^a-z0-9.]/-}.log
    for attempt in 1 2; do
        say "$title$([[ $attempt == 1 ]] || echo ' (second try)')"
        if supervise "$seconds" "$@" &>"$log"; then
            return 0
        fi
    done
    tail -n 20 "$log" >&2
    fail "$title failed twice; the whole log is $log"
}

# ---- packages without installing them ----

# Prints the archive that this machine uses, whether or not its indexes have been fetched.
archive() {
    local release uri
    # shellcheck source=/dev/null
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    uri=$(apt-get --print-uris update 2>/dev/null | sed -nE "s#^'([^']*/debian)/dists/$release/.*#\\1#p" | sed -n 1p)
    [[ -n $uri ]] || return 1
    echo "$uri"
}

# Queries the indexes of the open feed.
feed_cache() { apt-cache -q -c "$lab/feed/apt.conf" "$@"; }

# open_feed SUITE: writes an apt configuration that knows this suite and assumes that nothing is installed, so that apt
# lists everything that a package needs to run. The tools' suite includes its backports, which are used only by name.
# close_feed removes the configuration at the end of a setup, because the indexes are large.
open_feed() {
    local suite=$1 feed=$lab/feed archive
    [[ $(cat "$feed/suite" 2>/dev/null) != "$suite" ]] || return 0
    archive=$(archive) ||
        fail "apt on this machine knows no Debian archive of its release: add one to /etc/apt/sources.list" 2
    rm -rf "$feed"
    mkdir -p "$feed/state/lists/partial" "$feed/cache/archives/partial"
    : >"$feed/status"
    echo "deb [arch=amd64 signed-by=$archive_keyring] $archive $suite main" >"$feed/sources.list"
    [[ $suite != "$tools_suite" ]] ||
        echo "deb [arch=amd64 signed-by=$archive_keyring] $archive $suite-backports main" >>"$feed/sources.list"
    cat >"$feed/apt.conf" <<EOT
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear APT::Architectures;
#clear Acquire::IndexTargets;
APT::Architecture "amd64";
APT::Sandbox::User "$(id -un)";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Packages {
    MetaKey "\$(COMPONENT)/binary-\$(ARCHITECTURE)/Packages";
    ShortDescription "Packages";
    Description "\$(RELEASE)/\$(COMPONENT) \$(ARCHITECTURE) Packages";
};
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
    step 90 "package indexes of $suite" apt-get -q -c "$feed/apt.conf" update
    echo "$suite" >"$feed/suite"
}

close_feed() {
    rm -rf "$lab/feed"
}

# unpack_packages ROOT TITLE ARGUMENT…: downloads packages with one apt-get command line and unpacks them below ROOT.
unpack_packages() {
    local root=$1 title=$2 archives=$lab/feed/debs package
    shift 2
    rm -rf "$archives"
    mkdir -p "$archives/partial" "$root"/usr/{bin,lib,lib64,sbin}
    # As in base-files since Debian 13, and in installers before.
    ln -s usr/bin usr/lib usr/lib64 usr/sbin "$root/"
    step 120 "download $title" env --chdir="$archives" \
        apt-get -qy -c "$lab/feed/apt.conf" -o Dir::Cache::archives="$archives" "$@"
    # By numbers: this machine may have other ids for the same names. An ordinary user becomes the owner of everything.
    for package in "$archives"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" |
            tar -x -C "$root" --keep-directory-symlink --numeric-owner --preserve-permissions ||
            fail "cannot unpack $package"
    done
}

build_qemu() {
    local work=$1
    open_feed "$tools_suite"
    # kmod and the decompressors prepare the kernels.
    unpack_packages "$work/root" "qemu and virtiofsd of $tools_suite" \
        install --download-only qemu-system-x86 virtiofsd seabios kmod xz-utils zstd
    # Firmware for other machines, documentation and languages are not used.
    find "$work/root/usr/share" -mindepth 1 -maxdepth 1 ! -name qemu ! -name seabios -exec rm -rf {} +
    find "$work/root/usr/share/qemu" -type f ! -name pvh.bin ! -name 'linuxboot*.bin' ! -name kvmvapic.bin -delete
    rm -rf "$work/root/usr/lib/x86_64-linux-gnu/qemu" "$work/root/usr/lib/x86_64-linux-gnu/gconv"
}

# Runs in every userland, with its own loader and libraries. perf does not depend on the version of the kernel.
build_profiler() {
    local work=$1
    open_feed "$tools_suite"
    unpack_packages "$work/root" "perf of $tools_suite" install --download-only linux-perf
    rm -rf "$work"/root/usr/{share,lib/python3*,lib/x86_64-linux-gnu/{gconv,perl,perl-base}}
}

# Prints the suite that has a kernel series, with the backports of the tools' suite.
kernel_suite() {
    case $1 in
        7.3) echo experimental ;;
        *) echo "$tools_suite" ;;
    esac
}

build_kernel() {
    local work=$1 series=$2 suite version package packages=()
    suite=$(kernel_suite "$series")
    open_feed "$suite"
    # The cloud kernels have virtio_pci, virtiofs and virtio_console built in, so booting needs no driver.
    version=$(feed_cache pkgnames linux-image- |
        sed -nE "s/^linux-image-(${series//./\\.}[.0-9]*[^-]*-cloud-amd64)\$/\\1/p" | sort -V | tail -1)
    [[ -n $version ]] || fail "the archive has no $series cloud kernel for $suite"
    # Since 7.x the kernel is split into several packages.
    for package in "linux-image-$version" "linux-binary-$version" "linux-modules-$version" "linux-base-$version"; do
        if feed_cache show "$package" &>/dev/null; then packages+=("$package"); fi
    done
    unpack_packages "$work/root" "kernel $version" download "${packages[@]}"
    decompress_kernel "$(find "$work/root" -name 'vmlinuz*' -type f | head -1)" "$work/kernel"
    mv "$(find "$work/root" -path "*/lib/modules/$version" -type d | head -1)" "$work/modules"
    rm -rf "$work/root"
    mkdir -p "$work/lib/modules" && mv "$work/modules" "$work/lib/modules/$version"
    echo "$version" >"$work/version"
    unpacked "$(part_dir qemu)/root" depmod bin/kmod -b "$work" "$version" || fail "depmod failed for kernel $version"
}

# A kernel that need not decompress itself starts two seconds sooner under emulation. The setup header contains the
# position of the compressed part (Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length).
decompress_kernel() {
    local image=$1 target=$2 sectors offset length
    sectors=$(od -An -tu1 -j $((0x1f1)) -N1 "$image")
    offset=$(((sectors + 1) * 512 + $(od -An -tu4 -j $((0x248)) -N4 "$image")))
    # The last four bytes contain the decompressed size and are not part of the stream.
    length=$(($(od -An -tu4 -j $((0x24c)) -N4 "$image") - 4))
    case $(od -An -tx1 -j "$offset" -N4 "$image") in
        *"28 b5 2f fd") unpacked_command "$(part_dir qemu)/root" zstd bin/zstd -dcq ;;
        *"fd 37 7a 58") unpacked_command "$(part_dir qemu)/root" xz bin/xz -dcq ;;
        *) cp "$image" "$target" && return ;;
    esac
    head -c "$((offset + length))" "$image" | tail -c "$length" | "${unpacked_command[@]}" >"$target" ||
        fail "cannot unpack the kernel image"
}

# ---- User-Mode Linux ----

# Prints the suite whose package user-mode-linux has a kernel series.
uml_suite() {
    case $1 in
        6.12) echo trixie ;;
        7.2) echo forky ;;
        *) fail "no suite is known to have User-Mode Linux $1" ;;
    esac
}

# The program needs a newer libc than Debian 12 has, and restarts itself by its own path, which would be the loader's if
# the loader were called explicitly. So the path of the loader in its part is written into the program.
build_uml() {
    local work=$1 series=$2 target=$3 suite libraries=usr/lib/x86_64-linux-gnu
    suite=$(uml_suite "$series")
    open_feed "$suite"
    [[ $(feed_cache show user-mode-linux 2>/dev/null | awk '$1 == "Version:" { print $2; exit }') == "$series"um* ]] ||
        fail "the archive has no user-mode-linux of series $series in $suite"
    unpack_packages "$work/root" "User-Mode Linux $series of $suite" install --download-only user-mode-linux patchelf
    unpacked "$work/root" patchelf bin/patchelf --set-interpreter "$target/root/$libraries/ld-linux-x86-64.so.2" \
        --set-rpath "$target/root/$libraries" "$work/root/usr/bin/linux.uml" || fail "cannot set the loader of User-Mode Linux"
    mkdir "$work/lib"
    mv "$work/root/usr/lib/uml/modules" "$work/lib/modules"
    ls "$work/lib/modules" >"$work/version"
    rm -rf "$work"/root/usr/share "$work/root/$libraries/gconv"
}

# ---- userlands ----

build_tree() {
    local work=$1 suite=$2 packages
    open_feed "$suite"
    mapfile -t packages < <(package_list)
    unpack_packages "$work" "userland of $suite" install --download-only '?essential' "${packages[@]}"
    add_conflicting "$work" proftpd-core proftpd-mod-crypto
    configure_tree "$work"
    # Documentation is most of a fresh tree, and no test reads it. PostgreSQL goes without its compiler of queries.
    rm -rf "$work"/usr/share/{doc,man,info,locale}/* "$work"/usr/lib/x86_64-linux-gnu/lib{LLVM,z3}* \
        "$work"/usr/lib/postgresql/*/lib/{bitcode,llvmjit*}
}

# add_conflicting ROOT PACKAGE…: adds packages with what they need. apt refuses them beside those of the list, because a
# machine has one server of a kind.
add_conflicting() {
    local root=$1
    shift
    unpack_packages "$root/added" "$*" install --download-only "$@"
    cp -a "$root/added/usr/." "$root/usr/"
    rm -rf "$root/added"
}

# The userland of Debian 13 with OpenSSL 4 of Debian experimental. OpenSSL 3 leaves the path of the dynamic loader; the
# programs that are linked to it get a path of their own to it. Unchanged files are links to those of tree-trixie. With the
# headers, eng/native builds its tests for OpenSSL 4.
build_openssl4_tree() {
    local work=$1 libraries=usr/lib/x86_64-linux-gnu own=/usr/lib/openssl3 file
    cp -al "$(part_dir tree-trixie)/." "$work/"
    open_feed "$tools_suite"
    unpack_packages "$work/tools" "patchelf of $tools_suite" install --download-only patchelf
    mkdir "$work$own"
    mv "$work/$libraries"/lib{ssl,crypto}.so.3 "$work$own/"
    while read -r file; do
        unpacked "$work/tools" patchelf bin/patchelf --print-needed "$file" 2>/dev/null |
            grep -qE '^lib(ssl|crypto)\.so\.3$' || continue
        unpacked "$work/tools" patchelf bin/patchelf --add-rpath "$own" --output "$file.new" "$file" ||
            fail "cannot give $file a path to OpenSSL 3"
        chmod --reference="$file" "$file.new"
        mv "$file.new" "$file"
    done < <(find "$work/usr" -type f -size +4k -exec grep -lE 'lib(ssl|crypto)\.so\.3' {} +)
    open_feed experimental
    unpack_packages "$work/added" 'OpenSSL 4 of experimental' download libssl4 libssl-dev openssl openssl-provider-legacy
    rm "$work/added/$libraries"/*.a
    cp -a --remove-destination "$work"/added/{etc,usr} "$work/"
    rm -rf "$work"/{added,tools} "$work"/usr/share/{doc,man}/*
}

# Does the work of the packages' maintainer scripts, as far as programs here depend on it.
configure_tree() {
    local tree=$1 certificate user number=100
    mkdir -p "$tree"/{dev,media,mnt,proc,run,sys,tmp} "$tree"/usr/local/{bin,lib,sbin,share} "$tree"/root
    chmod 1777 "$tree/tmp"
    cp "$tree/usr/share/base-passwd/passwd.master" "$tree/etc/passwd"
    cp "$tree/usr/share/base-passwd/group.master" "$tree/etc/group"
    # The users that some servers need.
    for user in postgres dovecot dovenull opensmtpd opensmtpq rabbitmq ftp; do
        echo "$user:x:$number:$number::/tmp:/usr/sbin/nologin" >>"$tree/etc/passwd"
        echo "$user:x:$number:" >>"$tree/etc/group"
        number=$((number + 1))
    done
    ln -s mawk "$tree/usr/bin/awk"
    ln -s which.debianutils "$tree/usr/bin/which"
    ln -s ../lib/jvm/default-java/bin/java "$tree/usr/bin/java"
    printf 'passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n' >"$tree/etc/nsswitch.conf"
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$tree/etc/hosts"
    : >"$tree/etc/resolv.conf"
    # Like update-ca-certificates: a directory with links by name and by hash, and one file with all certificates.
    for certificate in "$tree"/usr/share/ca-certificates/mozilla/*.crt; do
        ln -s "../../../usr/share/ca-certificates/mozilla/${certificate##*/}" \
            "$tree/etc/ssl/certs/$(basename "$certificate" .crt).pem"
    done
    unpacked "$tree" openssl bin/openssl rehash "$tree/etc/ssl/certs" || fail "cannot hash the certificates of $tree"
    cat "$tree"/usr/share/ca-certificates/mozilla/*.crt >"$tree/etc/ssl/certs/ca-certificates.crt"
    # The guest mounts the kernel's modules and the .NET runtime here.
    mkdir -p "$tree"/usr/{lib/modules,share/dotnet}
    ln -s ../share/dotnet/dotnet "$tree/usr/bin/dotnet"
}

build_runtime() {
    local work=$1 source
    source=$(host_dotnet_dir)
    say "copy the .NET runtime of $source"
    cp -a "$source/dotnet" "$source/host" "$source/shared" "$work/"
}

# Prints the version of a .NET runtime other than the host's.
runtime_version() {
    case $1 in
        11) echo 11.0.0 ;;
        *) fail "no version of .NET $1 is known" ;;
    esac
}

# Lays the packages of a runtime out like an installation, around the host's own muxer.
build_packaged_runtime() {
    local work=$1 version name package target
    version=$(runtime_version "$2")
    mkdir "$work/restored"
    cat >"$work/restored/runtime.proj" <<EOT
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup>
    <PackageDownload Include="Microsoft.NETCore.App.Runtime.linux-x64;Microsoft.AspNetCore.App.Runtime.linux-x64" Version="[$version]" />
  </ItemGroup>
</Project>
EOT
    step 300 "restore .NET $version" "$(host_dotnet_dir)/dotnet" restore "$work/restored/runtime.proj" \
        --packages "$work/restored/packages" -p:DisableImplicitNuGetFallbackFolder=true
    for name in Microsoft.NETCore.App Microsoft.AspNetCore.App; do
        package=$work/restored/packages/$(tr '[:upper:]' '[:lower:]' <<<"$name").runtime.linux-x64/$version
        target=$work/shared/$name/$version
        mkdir -p "$target"
        find "$package/runtimes" -type f ! -name '*.xml' -exec cp {} "$target/" \;
    done
    mkdir -p "$work/host/fxr/$version"
    cp "$work/shared/Microsoft.NETCore.App/$version/libhostfxr.so" "$work/host/fxr/$version/"
    cp "$(host_dotnet_dir)/dotnet" "$work/"
    rm -rf "$work/restored"
}

# ---- room ----

# Keeps the most recently used of a part's older versions, because another checkout may still need it.
remove_older() {
    local part=$1 current=$2 dir kept=0
    while read -r dir; do
        [[ $dir != "$current" ]] || continue
        if ((kept++ > 0)); then remove_part "$dir"; fi
    done < <(ls -dt "$lab/parts/$part@"* 2>/dev/null)
}

# Removes a part if no machine runs on it. Returns 1 if one does.
remove_part() {
    local dir=$1 fd
    exec {fd}<"$dir"
    if ! flock --exclusive --nonblock "$fd"; then
        exec {fd}<&-
        say "$(basename "$dir") is in use and stays"
        return 1
    fi
    # Renamed first, so that a half-removed part is never found.
    rm -rf "$lab/parts/.removed"
    mv "$dir" "$lab/parts/.removed"
    rm -rf "$lab/parts/.removed"
    exec {fd}<&-
}
