using KernelTls.PackageTests;
using Xunit.Sdk;
using Xunit.v3;

// The kernel's counters and the building processor belong to the whole machine, so tests run one at a time.
[assembly: Parallelization(Mode = ParallelMode.None)]
[assembly: AssemblyFixture(typeof(Workshop))]
