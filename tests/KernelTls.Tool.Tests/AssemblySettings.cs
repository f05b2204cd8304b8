using Xunit.Sdk;
using Xunit.v3;

// The kernel's counters are shared, and one test removes the tls module.
[assembly: Parallelization(Mode = ParallelMode.None)]
