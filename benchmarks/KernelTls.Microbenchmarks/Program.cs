// The options are those of BenchmarkDotNet (--filter, --list, --exporters …) and --smoke. The latter runs each
// benchmark once and takes seconds.
using BenchmarkDotNet.Configs;
using BenchmarkDotNet.Diagnosers;
using BenchmarkDotNet.Jobs;
using BenchmarkDotNet.Reports;
using BenchmarkDotNet.Running;
using BenchmarkDotNet.Toolchains.InProcess.Emit;

const string Smoke = "--smoke";

// Run the benchmarks in this process. A VM cell has no SDK to build other processes, and figures of the two kinds must
// not be compared.
Job job = (args.Contains(Smoke) ? Job.Dry : Job.Default).WithToolchain(InProcessEmitToolchain.Instance);
IConfig config = DefaultConfig.Instance
    .AddJob(job)
    .AddDiagnoser(MemoryDiagnoser.Default)
    .WithArtifactsPath(Path.Combine(Path.GetTempPath(), "kerneltls-microbenchmarks"));
string[] rest = [.. args.Where(a => a != Smoke)];
Summary[] summaries = [.. BenchmarkSwitcher.FromAssembly(typeof(Program).Assembly)
    .Run(rest.Length > 0 ? rest : ["--filter", "*"], config)];
bool good = summaries.Length > 0 && summaries.All(s => !s.HasCriticalValidationErrors && s.Reports.Length > 0 && s.Reports.All(r => r.Success));
return good ? 0 : 1;
