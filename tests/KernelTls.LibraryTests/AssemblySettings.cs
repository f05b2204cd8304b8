// The kernel's counters are the whole machine's: one test at a time.
[assembly: CollectionBehavior(DisableTestParallelization = true)]
