# shellcheck shell=bash
# Sourced by eng/test: which tests run where. A suite is a line
#
#   PROJECT MODES [NAME…]
#
# of a test project, the modes it runs in (KERNELTLS_MODES; - for its own choice), and the names of its classes, or of methods as
# CLASS.METHOD, where not all of it runs. !NAME leaves tests out; a method's name may end in *.
# shellcheck disable=SC2034 # eng/test reads the lists

readonly every_mode=Stock,DirectOpenSsl,Kernel

# On this machine: what needs no kernel TLS, in the modes that need none.
host_suites=(
    # First: what it makes is wanted in the cells.
    'KernelTls.PackageTests -'
    'KernelTls.AspNetCore.Tests -'
    'KernelTls.ConformanceTests -'
    'KernelTls.UnitTests -'
    'KernelTls.Bench.Tests -'
    'KernelTls.Lab.Tests -'
    'KernelTls.Tool.Tests -'
)

# A cell in full, in the order of the time they take.
readonly full_parts=(peers streams programs tools)

# suites_of PART ENGINE: prints the suites of one part of a cell, which run one after the other in one boot.
suites_of() {
    # User-Mode Linux has no MPTCP.
    local without=''
    [ "$2" != uml ] || without='!SocketLayerTests.MPTCP_*'
    case $1 in
        # The contract of a stream in the other modes, SslStream and OpenSSL without the kernel, is tested on this machine, and so
        # is Kestrel on them.
        streams) echo "KernelTls.ConformanceTests Kernel $without" ;;
        peers) echo "KernelTls.FunctionalTests $every_mode" ;;
        programs)
            echo "KernelTls.AspNetCore.Tests Kernel !ChromiumTests"
            echo "KernelTls.PackageTests $every_mode ZeroCodeTests" ;;
        tools)
            echo "KernelTls.Lab.Tests $every_mode ScenarioTests RehearsalTests"
            echo "KernelTls.Tool.Tests $every_mode InfoTests ProbeTests ConnectTests ServeTests TopTests BenchTests PrivilegeTests" ;;
        # What depends on the kernel and on OpenSSL: the shim, which data path a connection gets, keys, control records, Kestrel by
        # the kernel's own words, and what the tool says of it.
        smoke)
            echo "KernelTls.FunctionalTests $every_mode OffloadTests DirectionTests ExpectNoPaddingTests SilentFallbackTests" \
                "SendFileTests KeyUpdateTests RekeyGapTests ResetTests PostHandshakeInteropTests"
            echo "KernelTls.AspNetCore.Tests $every_mode KernelTests OpenSslClientTests"
            echo "KernelTls.Tool.Tests $every_mode InfoTests" ;;
        # What a connection comes to without the module, and what a thousand of them leave behind.
        no-tls-module)
            echo "KernelTls.ConformanceTests $every_mode ModuleMissingTests.* LeakTests.Fallbacks_leave_nothing_behind"
            echo "KernelTls.AspNetCore.Tests $every_mode ModuleMissingTests"
            echo "KernelTls.Tool.Tests $every_mode ModuleMissingTests" ;;
        # .NET 11: private members of its own, and the stock stream and server that ours are compared with there.
        net11)
            echo 'KernelTls.ConformanceTests Kernel ReadTests DefaultNegotiationTests RecordFaultTests'
            echo 'KernelTls.AspNetCore.Tests Kernel KernelTests HandshakeTests HttpTests EndpointTests FeatureAfterEndTests' ;;
        # What User-Mode Linux has not: two processors, on which the threads of one process race, and MPTCP.
        race)
            echo 'KernelTls.ConformanceTests Kernel ConcurrencyTests CancellationTests DisposeTests KeyChangeWaitTests'
            echo 'KernelTls.ConformanceTests Kernel SocketLayerTests.MPTCP_*'
            echo 'KernelTls.FunctionalTests Kernel KeyUpdateTests'
            echo 'KernelTls.AspNetCore.Tests Kernel ShutdownTests StreamingCallTests' ;;
    esac
}

# A part that also runs the native tests, where no filter is given.
has_native_tests() { [ "$1" = streams ] || [ "$1" = smoke ]; }

# Prints the full names of a project's classes and methods, as far as its text shows them.
test_names() {
    awk '
        /^namespace / { space = $2; sub(/;.*/, "", space) }
        match($0, /(^|[ \t])class [A-Za-z0-9_]+/) {
            type = substr($0, RSTART, RLENGTH); sub(/.*class /, "", type); print space "." type; next
        }
        type != "" && match($0, /^    (public|internal|protected)[^(=]* [A-Za-z0-9_]+\(/) {
            method = substr($0, RSTART, RLENGTH - 1); sub(/.* /, "", method); print space "." type "." method
        }' "tests/$1"/*.cs
}

# hits SUITE…: whether the filter can hit any of these suites.
hits() {
    local suite arguments
    for suite in "$@"; do
        ! select_tests "$suite" || return 0
    done
    return 1
}

# select_tests SUITE: leaves in the array `arguments` what the suite's program is to run, by the filter too; 1 if that is nothing.
select_tests() {
    local project name names='' classes=() methods=() wanted=() without=()
    read -r project _ names <<< "$1"
    set -f
    for name in $names; do
        case $name in
            '!'*.*) without+=(-method- "*.${name#!}") ;;
            '!'*) without+=(-class- "*.${name#!}") ;;
            *.*) methods+=("$name") ;;
            *) classes+=("$name") ;;
        esac
    done
    set +f
    arguments=()
    if [ -z "$filter" ]; then
        for name in "${classes[@]}"; do arguments+=(-class "*.$name"); done
        for name in "${methods[@]}"; do arguments+=(-method "*.$name"); done
        arguments+=("${without[@]}")
        return 0
    fi
    mapfile -t wanted < <(test_names "$project" | grep -iF -- "$filter")
    [ "${#wanted[@]}" != 0 ] || return 1
    if [ "${#methods[@]}" != 0 ]; then
        # The program would run what either names: so those that both do, one by one.
        local method
        for method in "${methods[@]}"; do
            # shellcheck disable=SC2053 # a pattern
            for name in "${wanted[@]}"; do [[ $name != *.$method ]] || arguments+=(-method "$name"); done
        done
        [ "${#arguments[@]}" != 0 ]
        return
    fi
    if [ "${#classes[@]}" != 0 ]; then
        local class found=no
        for class in "${classes[@]}"; do
            for name in "${wanted[@]}"; do [[ $name. != *.$class.* ]] || found=yes; done
            arguments+=(-class "*.$class")
        done
        [ $found = yes ] || return 1
    fi
    arguments+=(-method "*$filter*" "${without[@]}")
}
