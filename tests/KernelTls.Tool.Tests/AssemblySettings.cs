// The kernel's counters are everybody's, and one test takes the tls module away.
[assembly: CollectionBehavior(DisableTestParallelization = true)]
