// The kernel's counters belong to the whole machine, so tests run one at a time.
[assembly: CollectionBehavior(DisableTestParallelization = true)]
