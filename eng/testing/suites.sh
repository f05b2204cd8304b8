# shellcheck shell=bash
# shellcheck disable=SC2034 # eng/test reads the lists
# Sourced by eng/test: defines which tests run where, and in which loop. A suite is a line
#
#   LOOP PROJECT MODES [ARGUMENT…]
#
# with the first loop that runs it (inner, outer or weekly), a test project, its modes (KERNELTLS_MODES, or - for the
# default), and arguments of its program. Traits in the sources do the rest:
#
#   [Trait("loop", "outer")]          the inner loop omits this test, class or assembly; the outer loop runs it
#   [Trait("loop", "outer-kernel")]   the same in mode Kernel; on this machine it is in the inner loop
#   [Trait("loop", "weekly")]         only with --cell: both loops omit it
#   [Trait("cell", "PART")]           this part of a cell runs it
#   [Trait("waits", "mostly")]        on this machine it runs beside others that wait; it looks at nothing that the process has once

readonly every_mode=Stock,DirectOpenSsl,Kernel

# On this machine: the tests that need no kernel TLS, in the modes that need none.
host_suites=(
    # The longest parts, and others wait for the first one: it publishes the applications that run in the cells and on .NET 11.
    'outer KernelTls.PackageTests - -trait cell=programs'
    'outer KernelTls.PackageTests - -trait loop=outer -trait- cell=programs'
    'inner KernelTls.ConformanceTests DirectOpenSsl'
    'inner KernelTls.AspNetCore.Tests DirectOpenSsl -trait- waits=mostly'
    'inner KernelTls.AspNetCore.Tests DirectOpenSsl -trait waits=mostly -parallelMode all -maxThreads 8'
    'inner KernelTls.PackageTests - -trait- loop=outer'
    'inner KernelTls.Tool.Tests -'
    'inner KernelTls.Bench.Tests -'
    'inner KernelTls.Weave.Tests -'
    'inner KernelTls.UnitTests -'
    'inner KernelTls.LoadTest.Tests -'
    # With DirectOpenSsl: a theory about modes on OpenSSL has no data without one.
    'outer KernelTls.ConformanceTests Stock,DirectOpenSsl -trait- loop=outer'
    'outer KernelTls.AspNetCore.Tests Stock,DirectOpenSsl -trait- loop=outer'
    # The libraries that need no server of the distribution. The others run in the cells.
    'outer KernelTls.LibraryTests - -trait host=yes'
    'weekly KernelTls.ConformanceTests Stock,Managed,DirectOpenSsl'
    'weekly KernelTls.AspNetCore.Tests Stock,Managed,DirectOpenSsl'
)

# The same on .NET 11. The SDK stays 10.
host_suites_11=(
    # A start: .NET's and Kestrel's private members, handshakes, and what a refused one throws.
    'inner KernelTls.ConformanceTests DirectOpenSsl -class *.HandshakeTests -class *.HandshakeFailureTests'
    'inner KernelTls.AspNetCore.Tests DirectOpenSsl -class *.KestrelInternalsTests -class *.HttpTests'
    'outer KernelTls.UnitTests -'
    'outer KernelTls.ConformanceTests DirectOpenSsl'
    'outer KernelTls.LibraryTests - -trait host=yes'
    # Applications that .NET 10 has published, because .NET 11 has no SDK here. They roll forward.
    'outer KernelTls.PackageTests - -trait cell=programs'
    'weekly KernelTls.ConformanceTests Stock,DirectOpenSsl'
    'weekly KernelTls.AspNetCore.Tests -'
    'weekly KernelTls.Weave.Tests -'
    'weekly KernelTls.Bench.Tests - -trait runtime=11'
    'weekly KernelTls.Tool.Tests -'
)

# On musl, by eng/musl. SilentConnectionTests ask glibc for the size of the heap, and the samples' tests start programs that are not
# published for musl.
musl_suites=(
    'weekly KernelTls.ConformanceTests Stock,DirectOpenSsl -class- *.SilentConnectionTests'
    'weekly KernelTls.AspNetCore.Tests DirectOpenSsl -class- *.SilentConnectionTests -class- *.ChromiumTests -class- *.SampleTests'
)

# The parts of a cell in full. `kernel` is the one that the inner loop boots.
readonly full_parts=(kernel modes programs libraries tools memory)

# The additional parts of a requested cell.
readonly costly_parts=(more-libraries)

# The duration and the processor share of the soak test: small, because it runs beside other parts.
readonly soak_minutes=3 soak_cores=0.4

# suites_of PART ENGINE CELL RUNTIME: prints the suites of one part of a cell, which run in one boot.
suites_of() {
    # User-Mode Linux has no MPTCP and no memory cgroups. The memory of TCP is that of all suites of a boot.
    local without='-trait- needs=tcp_mem'
    [ "$2" != uml ] || without+=' -trait- needs=mptcp -trait- needs=memcg'
    # The OpenSMTPD of Debian 12 cannot shake hands on its OpenSSL.
    local mail=''
    [[ $3 != bookworm-* ]] || mail='-class- *.SmtpTests'
    case $1 in
        # The stream contract and Kestrel in the other modes, SslStream and OpenSSL without the kernel, are tested on this
        # machine.
        kernel)
            echo "inner KernelTls.FunctionalTests Kernel $without"
            echo "inner KernelTls.ConformanceTests Kernel $without"
            echo 'inner KernelTls.AspNetCore.Tests Kernel -class- *.ChromiumTests' ;;
        modes) echo "weekly KernelTls.FunctionalTests $every_mode $without" ;;
        programs)
            echo "outer KernelTls.PackageTests $every_mode -trait cell=programs"
            echo "outer KernelTls.Weave.Tests $every_mode -trait cell=programs"
            echo "outer KernelTls.LoadTest.Tests $every_mode -trait cell=programs" ;;
        # Woven libraries with the distribution's servers. Without the variable only what costs little; RabbitMQ takes long to start.
        libraries)
            echo "outer KernelTls.LibraryTests Kernel -class- *.RabbitTests $mail"
            echo 'outer KernelTls.LibraryTests Stock -class *.HttpClientTests -class *.MqttTests'
            # The benchmark's rows of libraries and of load generators. OpenSSL 3.0 (Debian 12) does not put both directions into the kernel.
            [[ $3 == bookworm-* ]] || echo 'outer KernelTls.Bench.Tests - -class *.LibraryRowTests -class *.GeneratorTests' ;;
        more-libraries)
            echo 'weekly KernelTls.LibraryTests Kernel -class *.RabbitTests'
            echo "weekly KernelTls.LibraryTests DirectOpenSsl -class- *.RabbitTests $mail"
            echo "weekly KernelTls.LibraryTests Stock -class- *.HttpClientTests -class- *.MqttTests $mail" ;;
        # Alone in its boot: it removes the tls module.
        tools)
            echo "outer KernelTls.Tool.Tests $every_mode -trait cell=tools" ;;
        # Alone in its boot: it limits the memory of TCP.
        memory)
            echo 'outer KernelTls.FunctionalTests Kernel -trait needs=tcp_mem' ;;
        # The tests that depend on the kernel and on OpenSSL: the shim, the data path of a connection, keys, control
        # records, Kestrel by the kernel's own counters, and the tool's report of them. Also on .NET 11.
        smoke)
            echo 'outer KernelTls.FunctionalTests Kernel -trait cell=smoke'
            echo 'outer KernelTls.AspNetCore.Tests Kernel -trait cell=smoke'
            echo 'outer KernelTls.Tool.Tests Kernel -trait cell=smoke' ;;
        # Connections without the module, and what a thousand of them leave behind.
        no-tls-module)
            echo "outer KernelTls.ConformanceTests $every_mode -trait cell=no-tls-module"
            echo "outer KernelTls.AspNetCore.Tests $every_mode -trait cell=no-tls-module"
            echo "outer KernelTls.Tool.Tests $every_mode -trait cell=no-tls-module" ;;
        # Not available on User-Mode Linux: two processors, so that threads of one process race, and MPTCP.
        race)
            echo 'outer KernelTls.ConformanceTests Kernel -trait cell=race'
            echo 'outer KernelTls.FunctionalTests Kernel -trait cell=race'
            echo 'outer KernelTls.AspNetCore.Tests Kernel -trait cell=race' ;;
    esac
}
