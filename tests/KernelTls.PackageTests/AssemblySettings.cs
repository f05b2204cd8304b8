using KernelTls.PackageTests;

// The kernel's counters and the building processor belong to the whole machine, so tests run one at a time.
[assembly: CollectionBehavior(DisableTestParallelization = true)]
[assembly: AssemblyFixture(typeof(Workshop))]
