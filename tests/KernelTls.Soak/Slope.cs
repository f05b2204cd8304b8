namespace KernelTls.Soak;

/// <summary>
/// Represents the straight line that best fits points (least squares), and the uncertainty of its slope.
/// </summary>
/// <param name="Value">The slope.</param>
/// <param name="Error">The standard error of the slope.</param>
internal readonly record struct Slope(double Value, double Error)
{
    /// <summary>Gets the lower bound of the slope, with the certainty of two standard errors.</summary>
    public double AtLeast => Value - (2 * Error);

    public static Slope Of(IReadOnlyList<(double X, double Y)> points)
    {
        double meanX = points.Average(p => p.X);
        double meanY = points.Average(p => p.Y);
        double spread = points.Sum(p => (p.X - meanX) * (p.X - meanX));
        if (points.Count < 3 || spread == 0)
        {
            return new Slope(0, double.PositiveInfinity);
        }

        double slope = points.Sum(p => (p.X - meanX) * (p.Y - meanY)) / spread;
        double rest = points.Sum(p => Math.Pow(p.Y - meanY - (slope * (p.X - meanX)), 2));
        return new Slope(slope, Math.Sqrt(rest / (points.Count - 2) / spread));
    }
}
