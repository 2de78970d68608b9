/** What a PromQL expression uses, read with the grammar of Prometheus. */
import { parser } from '@prometheus-io/lezer-promql';

type SyntaxNode = ReturnType<typeof parser.parse>['topNode'];

/** A series selector. */
export interface Selector {
  readonly metric: string;
  /** Labels in its matchers. */
  readonly labels: readonly string[];
}

/** Part of an expression, with the selectors below it. */
export interface Scope {
  /** Function or aggregation: `rate`, `sum`. */
  readonly name: string;
  /** Labels after `by`; null: a function, or an aggregation without a clause. */
  readonly by: readonly string[] | null;
  readonly selectors: readonly Selector[];
}

export interface Expression {
  readonly selectors: readonly Selector[];
  /** Functions and aggregations, the outer ones first. */
  readonly scopes: readonly Scope[];
}

/** Grafana's variables in a duration, as valid durations. */
const DURATIONS: readonly (readonly [string, string])[] = [
  ['$__rate_interval', '5m'],
  ['$__range', '1h'],
];

/** @throws Error if it is not valid, or uses what this file does not know: `without`, `on`, `ignoring`, names in quotes */
export function readPromql(text: string): Expression {
  const plain = DURATIONS.reduce((so, [name, duration]) => so.replaceAll(name, duration), text);
  const of = (node: SyntaxNode): string => plain.slice(node.from, node.to);
  const selectors: Selector[] = [];
  const scopes: Scope[] = [];

  function selectorOf(node: SyntaxNode): Selector {
    const name = node.getChild('Identifier');
    if (name === null) throw new Error(`A selector without a metric: ${of(node)}`);
    const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
    return { metric: of(name), labels: matchers.map((matcher) => textOf(matcher, 'LabelName')) };
  }
  function textOf(node: SyntaxNode, child: string): string {
    const found = node.getChild(child);
    if (found === null) throw new Error(`No ${child} in ${of(node)}`);
    return of(found);
  }
  function below(node: SyntaxNode): Selector[] {
    const found: Selector[] = [];
    node.cursor().iterate((ref) => {
      if (ref.name === 'VectorSelector') found.push(selectorOf(ref.node));
    });
    return found;
  }

  parser.parse(plain).iterate({
    enter: ({ type, node }) => {
      if (type.isError) throw new Error(`Not PromQL at ${node.from}: ${plain}`);
      switch (type.name) {
        case 'VectorSelector':
          selectors.push(selectorOf(node));
          return;
        case 'FunctionCall':
          scopes.push({ name: textOf(node, 'FunctionIdentifier'), by: null, selectors: below(node) });
          return;
        case 'AggregateExpr': {
          const modifier = node.getChild('AggregateModifier');
          const labels = modifier?.getChild('GroupingLabels')?.getChildren('LabelName').map(of) ?? null;
          scopes.push({ name: textOf(node, 'AggregateOp'), by: labels, selectors: below(node) });
          return;
        }
        case 'Without':
        case 'MatchingModifierClause':
        case 'QuotedLabelMatcher':
        case 'QuotedLabelName':
          throw new Error(`${type.name} is not supported: ${plain}`);
      }
    },
  });
  return { selectors, scopes };
}
