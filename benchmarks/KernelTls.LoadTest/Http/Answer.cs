namespace KernelTls.LoadTest.Http;

/// <summary>Represents the answer to one request.</summary>
/// <param name="IsGood">Whether status and size are as expected.</param>
/// <param name="Received">The bytes of content.</param>
/// <param name="Text">The description of an answer that is not good.</param>
/// <param name="Start">The timestamp of the request, as all of them by <see cref="System.Diagnostics.Stopwatch"/>.</param>
/// <param name="Headers">The timestamp of the headers.</param>
/// <param name="ContentStart">The timestamp of the first byte of content.</param>
/// <param name="End">The timestamp of the end.</param>
internal readonly record struct Answer(bool IsGood, long Received, string Text, long Start, long Headers, long ContentStart, long End);
