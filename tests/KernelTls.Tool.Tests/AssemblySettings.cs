// The kernel's counters are shared, and one test removes the tls module.
[assembly: CollectionBehavior(DisableTestParallelization = true)]
