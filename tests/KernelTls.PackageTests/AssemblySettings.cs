using KernelTls.PackageTests;

// The kernel's counters are the whole machine's, and so is the processor that builds: one test at a time.
[assembly: CollectionBehavior(DisableTestParallelization = true)]
[assembly: AssemblyFixture(typeof(Workshop))]
