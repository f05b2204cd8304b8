using Xunit.Sdk;
using Xunit.v3;

// The kernel's counters belong to the whole machine, so tests run one at a time.
[assembly: Parallelization(Mode = ParallelMode.None)]
