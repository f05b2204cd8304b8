using System.Collections.Concurrent;
using System.Collections.Immutable;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.Diagnostics;
using Microsoft.CodeAnalysis.Operations;

namespace KernelTls.Analyzers;

/// <summary>
/// Warns where a KtlsStream authenticates through a reference of type SslStream. The methods of SslStream are not virtual, so the
/// connection is that of SslStream, and the stream reports the reason AuthenticatedAsBase.
/// </summary>
/// <remarks>
/// Follows a stream within one type and those nested in it: through variables, parameters, fields, properties and the results of
/// methods, whatever their order. It is a warning, because a variable may refer to a plain SslStream when the call is made.
/// </remarks>
[DiagnosticAnalyzer(LanguageNames.CSharp)]
public sealed class BaseAuthenticationAnalyzer : DiagnosticAnalyzer
{
    /// <summary>The identifier of the warning.</summary>
    public const string Id = "KTLS001";

    private static readonly DiagnosticDescriptor s_rule = new(
        Id,
        "A KtlsStream authenticates through SslStream",
        "'{0}' is that of SslStream, because it is called through a reference of type SslStream: the connection does not use kernel TLS. Call it on a KtlsStream.",
        "Usage",
        DiagnosticSeverity.Warning,
        isEnabledByDefault: true,
        "The methods of SslStream that authenticate are not virtual. KtlsStream declares its own, which only a reference of type KtlsStream calls.");

    /// <inheritdoc/>
    public override ImmutableArray<DiagnosticDescriptor> SupportedDiagnostics { get; } = [s_rule];

    /// <inheritdoc/>
    public override void Initialize(AnalysisContext context)
    {
        context.ConfigureGeneratedCodeAnalysis(GeneratedCodeAnalysisFlags.None);
        context.EnableConcurrentExecution();
        context.RegisterCompilationStartAction(static start =>
        {
            INamedTypeSymbol? ktlsStream = start.Compilation.GetTypeByMetadataName("KernelTls.KtlsStream");
            INamedTypeSymbol? sslStream = start.Compilation.GetTypeByMetadataName("System.Net.Security.SslStream");
            if (ktlsStream is not null && sslStream is not null)
            {
                ConcurrentDictionary<ISymbol, StreamFlow> flows = new(SymbolEqualityComparer.Default);
                start.RegisterSymbolStartAction(
                    symbol => Analyze(symbol, flows.GetOrAdd(Outermost(symbol.Symbol), _ => new StreamFlow(ktlsStream)), sslStream),
                    SymbolKind.NamedType);
            }
        });
    }

    private static void Analyze(SymbolStartAnalysisContext context, StreamFlow flow, INamedTypeSymbol sslStream)
    {
        context.RegisterOperationAction(
            operation => flow.Add(operation.Operation, operation.ContainingSymbol),
            OperationKind.SimpleAssignment,
            OperationKind.CoalesceAssignment,
            OperationKind.VariableDeclarator,
            OperationKind.FieldInitializer,
            OperationKind.PropertyInitializer,
            OperationKind.IsPattern,
            OperationKind.Argument,
            OperationKind.Return);
        context.RegisterOperationAction(
            operation =>
            {
                IInvocationOperation call = (IInvocationOperation)operation.Operation;
                if (SymbolEqualityComparer.Default.Equals(call.TargetMethod.ContainingType, sslStream) && Authenticates(call.TargetMethod.Name))
                {
                    flow.AddCall(call);
                }
            },
            OperationKind.Invocation);
        if (context.Symbol.ContainingType is not null)
        {
            return;
        }

        // Nested types have ended before.
        context.RegisterSymbolEndAction(end =>
        {
            foreach (IInvocationOperation call in flow.CallsOnKtlsStreams())
            {
                end.ReportDiagnostic(Diagnostic.Create(s_rule, call.Syntax.GetLocation(), call.TargetMethod.Name));
            }
        });
    }

    private static ISymbol Outermost(ISymbol type) => type.ContainingType is { } outer ? Outermost(outer) : type;

    private static bool Authenticates(string method) =>
        method.StartsWith("AuthenticateAs", StringComparison.Ordinal) || method.StartsWith("BeginAuthenticateAs", StringComparison.Ordinal);
}
