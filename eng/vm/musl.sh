# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of eng/lab, which sources this
# Builds the part `musl`: what .NET's packages for linux-musl-x64 expect of a system, which Debian has for its own libc only.
# Sourced by eng/lab.
#
#   ld-musl-x86_64.so.1            musl, as installed on this machine
#   libstdc++.so.6, libgcc_s.so.1  GCC's runtime libraries, from the sources of this machine's GCC
#   libssl.so.3, libcrypto.so.3    OpenSSL of Debian 13, from its sources

musl_loader=/lib/ld-musl-x86_64.so.1

build_musl() {
    local work=$1 build=$1/build kernel=$1/build/include include program
    for program in musl-gcc g++ make perl; do
        command -v "$program" >/dev/null || fail "$program is missing: apt-get install -y musl-tools g++ make perl" 2
    done
    include=$(g++ -print-file-name=include)
    mkdir -p "$kernel"
    # Kernel headers, without those of glibc beside them.
    ln -s /usr/include/linux /usr/include/asm-generic /usr/include/x86_64-linux-gnu/asm "$kernel/"
    open_feed "$tools_suite"
    fetch_musl_sources "$build"
    step 600 "build GCC's runtime libraries for musl" bash -c "$(declare -f build_musl_gcc); build_musl_gcc \"\$@\"" build "$build" "$work" "$include" "$vm"
    step 600 'build OpenSSL for musl' bash -c "$(declare -f build_musl_openssl); build_musl_openssl \"\$@\"" build "$build/openssl" "$work" "$kernel"
    cp -L "$musl_loader" "$work/"
    rm -rf "$build"
}

# fetch_musl_sources DIRECTORY: unpacks the sources of OpenSSL into DIRECTORY/openssl, and of GCC's runtime libraries into
# DIRECTORY/gcc. An archive may lack files of the newest version: then the one before is taken.
fetch_musl_sources() {
    local build=$1 feed=$lab/feed major archive version options
    major=$(gcc -dumpversion)
    options=(-q -c "$feed/apt.conf" -o "Acquire::IndexTargets::deb-src::Sources::MetaKey=\$(COMPONENT)/source/Sources")
    sed -n 's/^deb /deb-src /p' "$feed/sources.list" >"$build/sources"
    cat "$build/sources" >>"$feed/sources.list"
    step 120 'indexes of sources' apt-get "${options[@]}" update
    mkdir -p "$build"/{debs,openssl,gcc}
    step 300 "download gcc-$major-source" env --chdir="$build/debs" apt-get "${options[@]}" download "gcc-$major-source"
    dpkg-deb -x "$build"/debs/gcc-*.deb "$build/debs"
    archive=$(find "$build/debs" -name "gcc-$major.*.tar.xz" | head -1)
    tar -xJ -C "$build/gcc" --strip-components=1 --exclude='*/testsuite/*' --wildcards -f "$archive" \
        '*/libstdc++-v3/*' '*/libgcc/*' '*/config/*' '*/include/*' 'gcc-[^/]*/[a-zA-Z]*.*' 'gcc-[^/]*/mkinstalldirs' 'gcc-[^/]*/install-sh' \
        '*/gcc/BASE-VER' '*/gcc/DATESTAMP' || fail "cannot unpack $archive"
    while read -r version; do
        say "download the sources of OpenSSL $version"
        if supervise 300 env --chdir="$build/debs" apt-get "${options[@]}" source --download-only "openssl=$version" &>"$lab/logs/openssl.log"; then
            tar -xz -C "$build/openssl" --strip-components=1 -f "$(find "$build/debs" -name 'openssl_*.orig.tar.gz' | head -1)"
            return
        fi
        rm -f "$build"/debs/openssl_*
    done < <(apt-cache "${options[@]}" showsrc openssl | awk '$1 == "Version:" { print $2 }' | sort -Vru)
    fail "the archive has no complete sources of OpenSSL for $tools_suite"
}

build_musl_gcc() {
    local build=$1/libstdc++ sources=$1/gcc unwinder=$1/unwinder target=$2 include=$3 vm=$4 archive
    local specs=/usr/lib/x86_64-linux-musl/musl-gcc.specs
    mkdir -p "$build" "$sources/libstdc++-v3/testsuite" && cd "$build" || return
    : >"$sources/libstdc++-v3/testsuite/Makefile.in"
    ln -sf gthr-posix.h "$sources/libgcc/gthr-default.h"
    CC=musl-gcc CFLAGS='-g0 -O1' CXXFLAGS='-g0 -O1' \
        CXX="g++ -specs=$specs -nostdinc -nostdinc++ -isystem /usr/include/x86_64-linux-musl -isystem $include" \
        "$sources/libstdc++-v3/configure" --build=x86_64-linux-gnu --host=x86_64-linux-musl --prefix=/usr \
        --disable-multilib --disable-nls --disable-libstdcxx-pch || return
    make -j"$(nproc)" -C include && make -j"$(nproc)" -C libsupc++ && make -j"$(nproc)" -C src || return

    # The unwinder of this machine's GCC needs one function of glibc, and exports nothing: each of its functions gets another name, and
    # a jump to it the old one.
    mkdir -p "$unwinder"
    archive=$(gcc -print-file-name=libgcc_eh.a)
    nm --defined-only "$archive" | awk '$2 == "T" { print $3 }' | sort -u >"$unwinder/names"
    sed 's/.*/& own&/' "$unwinder/names" >"$unwinder/renamed"
    objcopy --redefine-syms="$unwinder/renamed" "$archive" "$unwinder/own.a"
    sed 's/.*/.globl &\n.type &,@function\n&: jmp own&/' "$unwinder/names" >"$unwinder/jumps.s"
    echo '.section .note.GNU-stack,"",@progbits' >>"$unwinder/jumps.s"
    # The specs of musl-gcc leave the table for unwinding away.
    musl-gcc -shared -fPIC -O2 -s -Wl,--eh-frame-hdr,-soname,libgcc_s.so.1 -o "$target/libgcc_s.so.1" \
        "$vm/musl-unwind.c" "$unwinder/jumps.s" "$unwinder/own.a" || return
    musl-gcc -shared -s -Wl,--eh-frame-hdr,-soname,libstdc++.so.6 -o "$target/libstdc++.so.6" \
        -Wl,--whole-archive src/.libs/libstdc++.a -Wl,--no-whole-archive "$target/libgcc_s.so.1" "$(gcc -print-libgcc-file-name)"
}

build_musl_openssl() {
    local target=$2 kernel=$3
    cd "$1" || return
    # The search for linux/tls.h takes CC alone.
    CC="musl-gcc -idirafter $kernel" ./Configure linux-x86_64 shared enable-ktls no-tests no-docs no-apps no-engine no-async \
        --prefix=/usr --libdir=lib --openssldir=/etc/ssl && grep -q '"ktls" => ""' configdata.pm && make -j"$(nproc)" build_libs || return
    strip --strip-unneeded libssl.so.3 libcrypto.so.3
    cp libssl.so.3 libcrypto.so.3 "$target/"
}
