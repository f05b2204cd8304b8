// Reads the time in a guest of User-Mode Linux without a system call. Such a guest has no vDSO that does, and .NET and
// OpenSSL read the time so often that a third of their system calls were for it. eng/test loads this library into the
// guest's programs (LD_PRELOAD).
//
//   gcc -O2 -shared -fPIC -o guest-clock.so guest-clock.c
//
// A reading of the kernel's clock is carried on by the processor's time stamp counter for at most five milliseconds.
// Every other clock, and a processor whose counter does not run evenly, is left to the kernel.

#include <cpuid.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define NANOSECONDS INT64_C(1000000000)
#define CARRIED (NANOSECONDS / 200)
// The longest reading that is carried on, in ticks: at most half a millisecond. The kernel reads its clock at an
// unknown moment of a reading, and a busy host can interrupt one for longer.
#define LONGEST_READING UINT64_C(500000)

// A reading of a clock. `version` is odd while it is written.
struct reading
{
    _Atomic uint32_t version;
    _Atomic uint64_t counter;
    _Atomic int64_t time;
};

static struct reading s_monotonic, s_realtime;

// The latest monotonic time that a caller got.
static _Atomic int64_t s_told;

// The first reading of this process, since which the counter's rate is measured.
static uint64_t s_first_counter;
static int64_t s_first_time;

// Whether the counter runs evenly, so that it can be used.
static bool s_is_even;

// Nanoseconds per tick of the counter, or 0 if not yet known.
static _Atomic double s_rate;

// Asks the kernel. The counter is that of the middle of the reading, or 0 if the reading took too long to be carried
// on.
static int64_t ask(clockid_t clock, uint64_t* counter)
{
    struct timespec time = {0};
    uint64_t before = __rdtsc();
    syscall(SYS_clock_gettime, clock, &time);
    uint64_t duration = __rdtsc() - before;
    *counter = duration < LONGEST_READING ? before + duration / 2 : 0;
    return time.tv_sec * NANOSECONDS + time.tv_nsec;
}

__attribute__((constructor)) static void start(void)
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    // Invariant TSC (AMD64 Architecture Programmer's Manual, volume 3, E.4.7).
    s_is_even = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
    for (int attempt = 0; s_is_even && s_first_counter == 0 && attempt < 100; attempt++)
    {
        s_first_time = ask(CLOCK_MONOTONIC, &s_first_counter);
    }
    s_is_even = s_first_counter != 0;
}

// Reads the kernel's clock, and stores the reading if it was short and no other thread stores one.
static int64_t read_anew(struct reading* reading, clockid_t clock)
{
    uint64_t counter;
    int64_t time = ask(clock, &counter);
    uint32_t version = atomic_load(&reading->version);
    if (counter == 0 || (version & 1) != 0 || !atomic_compare_exchange_strong(&reading->version, &version, version + 1))
    {
        return time;
    }
    atomic_store(&reading->counter, counter);
    atomic_store(&reading->time, time);
    atomic_store(&reading->version, version + 2);
    // Exact to a fortieth then, and better with each later reading.
    if (clock == CLOCK_MONOTONIC && time - s_first_time > 2 * CARRIED)
    {
        atomic_store(&s_rate, (double)(time - s_first_time) / (double)(counter - s_first_counter));
    }
    return time;
}

static int64_t now(struct reading* reading, clockid_t clock)
{
    double rate = atomic_load(&s_rate);
    uint32_t version = atomic_load(&reading->version);
    uint64_t counter = atomic_load(&reading->counter);
    int64_t time = atomic_load(&reading->time);
    double carried = (double)(__rdtsc() - counter) * rate;
    // A reading that changes is not waited for: this may be a signal handler of the thread that changes it.
    bool is_good = time != 0 && rate != 0 && (version & 1) == 0 && version == atomic_load(&reading->version);
    return is_good && carried < CARRIED ? time + (int64_t)carried : read_anew(reading, clock);
}

// Returns the monotonic time. It never decreases, although a reading may be before the time that was carried on.
static int64_t monotonic(void)
{
    int64_t time = now(&s_monotonic, CLOCK_MONOTONIC);
    int64_t told = atomic_load(&s_told);
    while (told < time && !atomic_compare_exchange_weak(&s_told, &told, time))
    {
    }
    return told < time ? time : told;
}

static int64_t realtime(void)
{
    return now(&s_realtime, CLOCK_REALTIME);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec* result)
{
    bool is_monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE;
    if (!s_is_even || !(is_monotonic || clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    {
        return (int)syscall(SYS_clock_gettime, clock, result);
    }
    int64_t time = is_monotonic ? monotonic() : realtime();
    *result = (struct timespec){.tv_sec = time / NANOSECONDS, .tv_nsec = time % NANOSECONDS};
    return 0;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval* restrict result, void* restrict zone)
{
    if (!s_is_even || zone != NULL)
    {
        return (int)syscall(SYS_gettimeofday, result, zone);
    }
    int64_t time = realtime();
    *result = (struct timeval){.tv_sec = time / NANOSECONDS, .tv_usec = time % NANOSECONDS / 1000};
    return 0;
}

__attribute__((visibility("default"))) time_t time(time_t* result)
{
    time_t seconds = s_is_even ? realtime() / NANOSECONDS : syscall(SYS_time, NULL);
    if (result != NULL)
    {
        *result = seconds;
    }
    return seconds;
}
