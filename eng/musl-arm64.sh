# shellcheck shell=bash
# Sourced by eng/native. Makes a compiler for linux-musl-arm64 of the compiler for linux-arm64 and Debian's musl for arm64. That is unpacked
# into a folder, because apt installs packages of another architecture only on machines that are set up for it.

# musl_arm64 DIRECTORY: makes DIRECTORY/cc, and below DIRECTORY what qemu needs of the target's system.
musl_arm64() {
    local root=$1 feed=$1/feed specs=/usr/lib/x86_64-linux-musl/musl-gcc.specs package library
    [ ! -x "$root/cc" ] || return 0
    step 'musl for arm64'
    rm -rf "$root"
    mkdir -p "$feed/state/lists/partial" "$feed/cache/archives/partial"
    : > "$feed/status"
    cat > "$feed/apt.conf" <<EOT
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "arm64";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::http::Timeout "30";
Dir::State "$feed/state";
Dir::State::status "$feed/status";
Dir::Cache "$feed/cache";
EOT
    # Other sources of this machine may have nothing for arm64; what counts is whether the packages come.
    timeout 120 apt-get -qq -c "$feed/apt.conf" update > "$root/apt.log" 2>&1 || true
    (cd "$feed" && timeout 120 apt-get -qq -c "$feed/apt.conf" download musl musl-dev) >> "$root/apt.log" 2>&1 || {
        cat "$root/apt.log" >&2
        fail "the package sources of this machine do not serve musl and musl-dev for arm64"
    }
    for package in "$feed"/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    # The links of the linker and of the loader are absolute, and must stay within the folder.
    library=$(find "$root" -name libc.so -path '*aarch64-linux-musl*' ! -type l | sed 1q)
    mkdir -p "$root/lib"
    ln -sfr "$library" "$root/lib/ld-musl-aarch64.so.1"
    [ "$library" = "$root/usr/lib/aarch64-linux-musl/libc.so" ] || ln -sfr "$library" "$root/usr/lib/aarch64-linux-musl/libc.so"
    sed -e "s#/usr/\(lib\|include\)/x86_64#$root/usr/\1/aarch64#g" -e 's#ld-musl-x86_64#ld-musl-aarch64#' "$specs" > "$root/musl-gcc.specs"
    # Outlined atomics would need a function of glibc. The folder's name is not a part of what is built.
    printf '#!/bin/sh\nexec aarch64-linux-gnu-gcc -mno-outline-atomics "-ffile-prefix-map=%s=/musl" "$@" -specs "%s"\n' \
        "$root" "$root/musl-gcc.specs" > "$root/cc.new"
    chmod +x "$root/cc.new"
    rm -rf "$feed"
    mv "$root/cc.new" "$root/cc"
}
