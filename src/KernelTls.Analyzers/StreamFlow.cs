using System.Collections.Concurrent;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.Operations;

namespace KernelTls.Analyzers;

/// <summary>
/// Records which symbols get their value from which, and returns the calls on symbols that may refer to a KtlsStream. Thread-safe.
/// </summary>
internal sealed class StreamFlow(INamedTypeSymbol ktlsStream)
{
    private readonly ConcurrentBag<(ISymbol Source, ISymbol Target)> _edges = [];
    private readonly ConcurrentBag<ISymbol> _known = [];
    private readonly ConcurrentBag<IInvocationOperation> _calls = [];

    /// <summary>Records an operation that gives a symbol a value.</summary>
    public void Add(IOperation operation, ISymbol method)
    {
        switch (operation)
        {
            case IAssignmentOperation assignment:
                foreach (ISymbol target in Sources(assignment.Target).Symbols)
                {
                    Add(target, assignment.Value);
                }

                break;
            case IVariableDeclaratorOperation declarator when declarator.GetVariableInitializer() is { } initializer:
                Add(declarator.Symbol, initializer.Value);
                break;
            case IFieldInitializerOperation initializer:
                foreach (IFieldSymbol field in initializer.InitializedFields)
                {
                    Add(field, initializer.Value);
                }

                break;
            case IPropertyInitializerOperation initializer:
                foreach (IPropertySymbol property in initializer.InitializedProperties)
                {
                    Add(property, initializer.Value);
                }

                break;
            case IIsPatternOperation { Pattern: IDeclarationPatternOperation { DeclaredSymbol: { } variable } } pattern:
                Add(variable, pattern.Value);
                break;
            case IArgumentOperation { Parameter: { } parameter } argument:
                Add(parameter, argument.Value);
                break;
            case IReturnOperation { ReturnedValue: { } value }:
                Add(Property(Owner(operation, method)), value);
                break;
        }
    }

    /// <summary>Records a call of a method of SslStream.</summary>
    public void AddCall(IInvocationOperation call) => _calls.Add(call);

    public IEnumerable<IInvocationOperation> CallsOnKtlsStreams()
    {
        ILookup<ISymbol, ISymbol> targets = _edges.ToLookup(e => e.Source, e => e.Target, SymbolEqualityComparer.Default);
        HashSet<ISymbol> known = new(SymbolEqualityComparer.Default);
        Stack<ISymbol> left = new(_known);
        while (left.Count > 0)
        {
            ISymbol symbol = left.Pop();
            if (known.Add(symbol))
            {
                foreach (ISymbol target in targets[symbol])
                {
                    left.Push(target);
                }
            }
        }

        return _calls.Where(call =>
        {
            (bool isKtlsStream, List<ISymbol> symbols) = Sources(call.Instance);
            return isKtlsStream || symbols.Any(known.Contains);
        });
    }

    private void Add(ISymbol target, IOperation value)
    {
        // Numbers and strings, which most values are: nothing to follow.
        if (value.Type is { SpecialType: SpecialType.System_String } or { IsValueType: true, SpecialType: not SpecialType.None })
        {
            return;
        }

        (bool isKtlsStream, List<ISymbol> symbols) = Sources(value);
        if (isKtlsStream)
        {
            _known.Add(target.OriginalDefinition);
        }

        foreach (ISymbol source in symbols)
        {
            _edges.Add((source, target.OriginalDefinition));
        }
    }

    /// <summary>Returns whether an expression converts a KtlsStream, and otherwise the symbols that its value may come from.</summary>
    private (bool IsKtlsStream, List<ISymbol> Symbols) Sources(IOperation? expression)
    {
        List<ISymbol> symbols = [];
        bool isKtlsStream = false;
        Stack<IOperation?> left = new([expression]);
        while (left.Count > 0)
        {
            IOperation? operation = left.Pop();
            if (IsKtlsStream(operation?.Type))
            {
                isKtlsStream = true;
                continue;
            }

            switch (operation)
            {
                case IConversionOperation conversion:
                    left.Push(conversion.Operand);
                    break;
                case IParenthesizedOperation parenthesized:
                    left.Push(parenthesized.Operand);
                    break;
                case IAwaitOperation awaited:
                    left.Push(awaited.Operation);
                    break;
                case IConditionalOperation conditional:
                    left.Push(conditional.WhenTrue);
                    left.Push(conditional.WhenFalse);
                    break;
                case ICoalesceOperation coalesce:
                    left.Push(coalesce.Value);
                    left.Push(coalesce.WhenNull);
                    break;
                case ISwitchExpressionOperation choice:
                    foreach (ISwitchExpressionArmOperation arm in choice.Arms)
                    {
                        left.Push(arm.Value);
                    }

                    break;
                case ISimpleAssignmentOperation assignment:
                    left.Push(assignment.Value);
                    break;
                case IConditionalAccessInstanceOperation instance:
                    left.Push(Accessed(instance));
                    break;
                case ILocalReferenceOperation reference:
                    symbols.Add(reference.Local);
                    break;
                case IParameterReferenceOperation reference:
                    symbols.Add(reference.Parameter.OriginalDefinition);
                    break;
                case IMemberReferenceOperation reference:
                    symbols.Add(reference.Member.OriginalDefinition);
                    break;
                case IInvocationOperation call:
                    symbols.Add(call.TargetMethod.OriginalDefinition);
                    break;
            }
        }

        return (isKtlsStream, symbols);
    }

    private bool IsKtlsStream(ITypeSymbol? type)
    {
        for (; type is not null; type = type.BaseType)
        {
            if (SymbolEqualityComparer.Default.Equals(type.OriginalDefinition, ktlsStream))
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>Returns the expression before the <c>?.</c> that an operation follows.</summary>
    private static IOperation? Accessed(IOperation instance)
    {
        IOperation? operation = instance;
        while (operation is not null && operation is not IConditionalAccessOperation)
        {
            operation = operation.Parent;
        }

        return (operation as IConditionalAccessOperation)?.Operation;
    }

    /// <summary>Returns the local function, the lambda or the method that returns a value.</summary>
    private static ISymbol Owner(IOperation operation, ISymbol method)
    {
        for (IOperation? parent = operation.Parent; parent is not null; parent = parent.Parent)
        {
            switch (parent)
            {
                case ILocalFunctionOperation local:
                    return local.Symbol;
                case IAnonymousFunctionOperation lambda:
                    return lambda.Symbol;
            }
        }

        return method;
    }

    /// <summary>Returns the property of a getter, which references name, or else the symbol itself.</summary>
    private static ISymbol Property(ISymbol symbol) => (symbol as IMethodSymbol)?.AssociatedSymbol ?? symbol;
}
