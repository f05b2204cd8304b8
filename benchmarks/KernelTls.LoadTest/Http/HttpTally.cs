using System.Diagnostics;
using KernelTls.LoadTest.Report;
using KernelTls.LoadTest.Running;

namespace KernelTls.LoadTest.Http;

/// <summary>Represents the counted requests of one loop or of all loops.</summary>
internal sealed class HttpTally
{
    private readonly List<long> _headers = [];
    private readonly List<long> _contentStart = [];
    private readonly List<long> _contentEnd = [];

    public long Answered { get; private set; }

    public long Bad { get; private set; }

    public long Errors { get; private set; }

    /// <summary>Gets the bytes of content of the good answers and their requests.</summary>
    public long Content { get; private set; }

    public void AddAnswer(bool isGood, long content)
    {
        Answered++;
        Bad += isGood ? 0 : 1;
        Content += isGood ? content : 0;
    }

    public void AddError() => Errors++;

    /// <param name="headers">
    /// The time until the headers, in ticks of <see cref="Stopwatch"/> like the other times.
    /// </param>
    /// <param name="contentStart">The time until the first byte, or until the end if there is no content.</param>
    /// <param name="contentEnd">The time until the end.</param>
    public void AddTimes(long headers, long contentStart, long contentEnd)
    {
        _headers.Add(headers);
        _contentStart.Add(contentStart);
        _contentEnd.Add(contentEnd);
    }

    public void Add(HttpTally other)
    {
        Answered += other.Answered;
        Bad += other.Bad;
        Errors += other.Errors;
        Content += other.Content;
        _headers.AddRange(other._headers);
        _contentStart.AddRange(other._contentStart);
        _contentEnd.AddRange(other._contentEnd);
    }

    /// <param name="results">The results to which the figures are added.</param>
    /// <param name="schedule">The time that counted.</param>
    public void AddTo(Results results, Schedule schedule)
    {
        results.Add(Metrics.Requests, Answered);
        results.Add(Metrics.RequestsPerSecond, Answered / schedule.Counted.TotalSeconds);
        results.Add(Metrics.ContentPerSecond, Content / schedule.Counted.TotalSeconds);
        WorkMeter.Add(results, schedule.Processor, Answered, Content);
        results.Add(Metrics.BadResponses, Bad);
        results.Add(Metrics.Errors, Errors);
        if (_headers.Count > 0)
        {
            Metrics.Headers.Add(results, _headers);
            Metrics.ContentStart.Add(results, _contentStart);
            Metrics.ContentEnd.Add(results, _contentEnd);
        }
    }
}
