using KernelTls.LoadTest.Report;

namespace KernelTls.LoadTest.Tests;

public class DistributionTests
{
    [Theory]
    [InlineData(0, 10)]
    [InlineData(0.5, 30)]
    [InlineData(0.25, 20)]
    [InlineData(0.9, 46)]
    [InlineData(1, 50)]
    public void A_percentile_lies_between_its_neighbours(double share, double expected) =>
        Assert.Equal(expected, Distribution.At([10, 20, 30, 40, 50], share), 6);

    [Theory]
    [InlineData(0)]
    [InlineData(0.99)]
    [InlineData(1)]
    public void Of_one_value_all_are_that_one(double share) => Assert.Equal(7, Distribution.At([7], share));
}
