// The kernel's counters are those of the whole machine, so tests run one at a time.
[assembly: CollectionBehavior(DisableTestParallelization = true)]
