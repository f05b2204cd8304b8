using System.Collections.Immutable;
using System.Composition;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CodeActions;
using Microsoft.CodeAnalysis.CodeFixes;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Microsoft.CodeAnalysis.Formatting;
using Microsoft.CodeAnalysis.Simplification;

namespace KernelTls.Analyzers;

/// <summary>Calls the method of KtlsStream in place of that of SslStream (<see cref="BaseAuthenticationAnalyzer"/>).</summary>
[ExportCodeFixProvider(LanguageNames.CSharp)]
[Shared]
public sealed class BaseAuthenticationCodeFix : CodeFixProvider
{
    private const string Title = "Call the method of KtlsStream";

    /// <inheritdoc/>
    public override ImmutableArray<string> FixableDiagnosticIds { get; } = [BaseAuthenticationAnalyzer.Id];

    /// <inheritdoc/>
    public override FixAllProvider GetFixAllProvider() => WellKnownFixAllProviders.BatchFixer;

    /// <inheritdoc/>
    public override async Task RegisterCodeFixesAsync(CodeFixContext context)
    {
        SyntaxNode root = (await context.Document.GetSyntaxRootAsync(context.CancellationToken).ConfigureAwait(false))!;
        if (Receiver(root.FindNode(context.Span, getInnermostNodeForTie: true)) is { } receiver)
        {
            context.RegisterCodeFix(
                CodeAction.Create(Title, _ => Task.FromResult(Cast(context.Document, root, receiver)), Title), context.Diagnostics);
        }
    }

    private static ExpressionSyntax? Receiver(SyntaxNode call) => call switch
    {
        InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access } => access.Expression,
        InvocationExpressionSyntax { Expression: MemberBindingExpressionSyntax } => call.FirstAncestorOrSelf<ConditionalAccessExpressionSyntax>()?.Expression,
        _ => null,
    };

    private static Document Cast(Document document, SyntaxNode root, ExpressionSyntax receiver)
    {
        TypeSyntax type = SyntaxFactory.ParseTypeName("global::KernelTls.KtlsStream").WithAdditionalAnnotations(Simplifier.Annotation);
        ExpressionSyntax cast = SyntaxFactory.ParenthesizedExpression(
            SyntaxFactory.CastExpression(type, SyntaxFactory.ParenthesizedExpression(receiver.WithoutTrivia()).WithAdditionalAnnotations(Simplifier.Annotation)));
        return document.WithSyntaxRoot(root.ReplaceNode(
            receiver, cast.WithTriviaFrom(receiver).WithAdditionalAnnotations(Formatter.Annotation, Simplifier.Annotation)));
    }
}
