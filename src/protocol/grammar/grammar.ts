/**
 * A grammar for constrained decoding: the protocol text that one agent may write, and nothing else.
 *
 * What it admits parses without a warning, every action in it names something that the agent may use,
 * with parameters of the declared shape. What a grammar cannot count stays with the runtime: that ids
 * differ, that names exist when they are referred to, and the limits (P12, P16).
 */
import { INTERNAL_ACTIONS } from '../../domain/action-types.ts';
import type { InternalAction } from '../../domain/action-types.ts';
import type { AgentDefinition, ProtocolOptions, ResolvedAgent } from '../../domain/manifest.ts';
import { isInternalAllowed } from '../prompt/allowed.ts';
import { JsonGrammar, SchemaGrammar } from './json.ts';
import type { Property } from './json.ts';
import {
  RuleBook,
  choice,
  eitherOrder,
  many,
  noneOf,
  oneOf,
  optional,
  repeat,
  separated,
  sequence,
  text,
} from './model.ts';
import type { Expression } from './model.ts';
import { decimals, integers } from './numbers.ts';
import { printGrammar } from './print.ts';
import type { GrammarFormat } from './print.ts';
import { responseText, thoughtText } from './text.ts';
import { limits } from '../../domain/limits.ts';

export type { GrammarFormat } from './print.ts';

export interface AgentGrammar {
  /** In the notation asked for; its first rule is where it begins (`root` in GBNF, `start` in Lark). */
  readonly text: string;
  /** What the parameters' schemas ask for beyond what a grammar can say, one line each. */
  readonly notes: readonly string[];
}

/**
 * The grammar of an agent's generations: thoughts, actions and responses in any order, with at least
 * one action or response (P9-P11).
 *
 * @param options `form` is the agent's own (`protocol.form`) unless another is asked for (P18)
 */
export function buildGrammar(
  resolved: ResolvedAgent,
  options: { readonly format: GrammarFormat; readonly form?: ProtocolOptions['form'] },
): AgentGrammar {
  const form = options.form ?? resolved.agent.protocol.form;
  const book = new RuleBook();
  const notes = new Set<string>();
  const actions = new ActionGrammar(new JsonGrammar(book), resolved, form, notes);
  defineDocument(book, actions.any());
  const title = [
    `Protocol text of the agent "${resolved.agent.name}", ${form} form of actions.`,
    'Made from its manifest: make it again when the manifest or one of its tools changes.',
  ];
  return { text: printGrammar(book.rules(), options.format, title), notes: [...notes] };
}

/** @param action an action from behind `<action` to its end */
function defineDocument(book: RuleBook, action: Expression): void {
  const inThought = thoughtText(book);
  const inResponse = responseText(book);
  const open = text('<thought>');
  // Each stretch of text is one lexeme with the tag that ends it: only there it is known to have ended.
  const toAction = book.lexeme('text-to-action', sequence(inThought.fromStart, text('<action')));
  const toClose = book.lexeme('text-to-close', sequence(inThought.fromStart, text('</thought>')));
  const furtherToAction = book.lexeme('further-to-action', sequence(inThought.further, text('<action')));
  const furtherToClose = book.lexeme('further-to-close', sequence(inThought.further, text('</thought>')));
  const idleThought = book.rule('idle-thought', sequence(open, toClose));
  const actingThought = book.rule(
    'acting-thought',
    sequence(open, toAction, action, many(sequence(furtherToAction, action)), furtherToClose),
  );
  const topAction = book.rule('top-action', sequence(text('<action'), action));
  const final = choice(text(' final="true"'), text(' final="false"'));
  const responseEnd = book.lexeme('response-end', sequence(inResponse.fromStart, text('</response>')));
  const response = book.rule('response', sequence(text('<response'), optional(final), text('>'), responseEnd));
  const gap = optional(book.lexeme('gap', repeat(oneOf(' \t\n'), 1, 8)));
  const work = book.rule('work', choice(actingThought, topAction, response));
  book.rule(
    'root',
    sequence(gap, many(sequence(idleThought, gap)), work, many(sequence(gap, choice(idleThought, work))), gap),
  );
}

/** What differs between the two forms: where the fields of an action stand. */
class ActionGrammar {
  readonly #json: JsonGrammar;
  readonly #resolved: ResolvedAgent;
  readonly #isCompact: boolean;
  readonly #notes: Set<string>;
  readonly #id: Expression;
  readonly #quotedId: Expression;
  /** The attributes `id` and `mode`, in either order. */
  readonly #identity: Expression;
  readonly #endTag: Expression;
  readonly #endAction: Expression;
  /** Attributes (compact) or body fields (full) behind name and parameters. */
  readonly #fields: Expression;

  constructor(json: JsonGrammar, resolved: ResolvedAgent, form: ProtocolOptions['form'], notes: Set<string>) {
    const { book } = json;
    this.#json = json;
    this.#resolved = resolved;
    this.#isCompact = form === 'compact';
    this.#notes = notes;
    this.#id = book.lexeme('id', sequence(oneOf('A-Za-z_'), repeat(oneOf('A-Za-z0-9_'), 0, limits.idChars - 1)));
    this.#quotedId = book.lexeme('quoted-id', sequence(text('"'), this.#id, text('"')));
    const id = book.lexeme('id-attribute', attribute('id', this.#id));
    const modes = choice(text('async'), text('sync'), text('fire_and_forget'));
    const mode = book.lexeme('mode-attribute', attribute('mode', modes));
    this.#identity = book.rule('identity', eitherOrder(id, mode));
    this.#endTag = book.lexeme('end-tag', sequence(text('>'), optional(json.space)));
    this.#endAction = book.lexeme('end-action', sequence(optional(json.space), text('</action>')));
    this.#fields = this.#isCompact ? this.#attributes() : this.#bodyFields();
  }

  /** Any action that the agent may declare, from behind `<action` to the end of `</action>`. */
  any(): Expression {
    const { agent } = this.#resolved;
    const { imports } = agent;
    const ways = [this.#typed('llm', [[null, this.#llm()]])];
    const tools = [...this.#resolved.tools.values()].map(({ name, parameters }): Call => {
      const schema = new SchemaGrammar(this.#json, name, parameters, this.#notes);
      return [name, schema.parameters(this.#isCompact ? ['parameters'] : [])];
    });
    if (tools.length > 0) ways.push(this.#typed('tool', tools));
    for (const capability of agent.capabilities) ways.push(this.#typed(capability, [[null, this.#code(capability)]]));
    const internal = INTERNAL_ACTIONS.filter((name) => isInternalAllowed(agent, name));
    if (internal.length > 0) {
      ways.push(
        this.#typed(
          'internal',
          internal.map((name): Call => [name, this.#internal(name)]),
        ),
      );
    }
    const calls = (names: readonly string[], parameters: Expression): Call[] => names.map((name) => [name, parameters]);
    if (imports.agents.length > 0) {
      const message = this.#object('agent', [
        ['message', this.#json.nonBlank],
        ['context?', this.#json.value],
      ]);
      ways.push(this.#typed('agent', calls(imports.agents, message)));
    }
    if (imports.workflows.length > 0) ways.push(this.#typed('workflow', calls(imports.workflows, this.#anything())));
    if (imports.relics.length > 0) ways.push(this.#typed('relic', calls(imports.relics, this.#anything()), true));
    return this.#json.book.rule('action', choice(...ways));
  }

  /** Every call of one type of action. @param endpoints a name goes on as `name.endpoint` */
  #typed(type: string, calls: readonly Call[], endpoints = false): Expression {
    const { book, open, close, comma, colon } = this.#json;
    const typeAttribute = text(` type="${type}"`);
    const head = type === 'tool' ? optional(typeAttribute) : typeAttribute;
    const endpoint = (name: string, spelled: (part: string) => string): Expression =>
      endpoints ? sequence(text('.'), this.#endpoint(name, spelled)) : sequence();
    const field = (name: string): Expression => sequence(text(`"${name}"`), colon);
    if (this.#isCompact) {
      const ways = calls.map(([name, parameters]) => {
        const named =
          name === null
            ? sequence()
            : book.lexeme(
                `${type}-${name}-name`,
                sequence(text(` name="${escaped(name)}`), endpoint(name, escaped), text('"')),
              );
        return sequence(named, this.#identity, this.#fields, this.#endTag, this.#compactBody(name, parameters));
      });
      return book.rule(`${type}-action`, sequence(head, choice(...ways), this.#endAction));
    }
    const ways = calls.map(([name, parameters]) => {
      if (name === null) return sequence(field('parameters'), parameters);
      const inner = (part: string): string => JSON.stringify(part).slice(1, -1);
      const begins = text(`"${inner(name)}`);
      const named = book.lexeme(`${type}-${name}-name`, sequence(begins, endpoint(name, inner), text('"')));
      return sequence(field('name'), named, comma, field('parameters'), parameters);
    });
    return book.rule(
      `${type}-action`,
      sequence(head, this.#identity, this.#endTag, open, choice(...ways), this.#fields, close, this.#endAction),
    );
  }

  /** What a relic is asked for: one of its endpoints, or any name where they are not known. */
  #endpoint(relic: string, spelled: (part: string) => string): Expression {
    const known = Object.keys(this.#resolved.relics.get(relic)?.endpoints ?? {});
    return known.length > 0 ? choice(...known.map((name) => text(spelled(name)))) : this.#id;
  }

  /** Parameters called `parameters` would be read as the full form: such a tool is called in it. */
  #compactBody(name: string | null, parameters: Expression): Expression {
    const tool = name === null ? undefined : this.#resolved.tools.get(name);
    const properties = tool?.parameters['properties'];
    const collides = typeof properties === 'object' && properties !== null && Object.hasOwn(properties, 'parameters');
    if (!collides) return parameters;
    const { open, close, colon } = this.#json;
    return sequence(open, text('"parameters"'), colon, parameters, close);
  }

  /** Fields of the full form, in the order in which the prompt shows them. */
  #bodyFields(): Expression {
    const { book, comma, colon } = this.#json;
    const quotedId = this.#quotedId;
    const field = (name: string, value: Expression): Expression => sequence(comma, text(`"${name}"`), colon, value);
    return book.rule(
      'fields',
      sequence(
        eitherOrder(field('depends_on', this.#json.list(quotedId, 0, null)), field('output_key', quotedId)),
        optional(field('wait_for_all', this.#json.boolean)),
        optional(field('timeout', book.lexeme('timeout', SECONDS))),
        optional(field('retry', book.lexeme('retry', ATTEMPTS))),
        optional(field('on_error', book.lexeme('on-error', choice(text('"fail"'), text('"skip"'), text('"retry"'))))),
        optional(field('when', this.#json.nonBlank)),
        optional(field('priority', book.lexeme('priority', PRIORITY))),
        optional(field('idempotency_key', book.lexeme('idempotency-key', sequence(text('"'), KEY, text('"'))))),
        optional(field('cache_ttl', book.lexeme('cache-ttl', CACHE_SECONDS))),
      ),
    );
  }

  /** The same fields as attributes. */
  #attributes(): Expression {
    const { book } = this.#json;
    const field = (name: string, value: Expression): Expression =>
      book.lexeme(`${name}-attribute`, attribute(name, value));
    const ids = separated(this.#id, choice(text(','), text(', ')), 0);
    return book.rule(
      'fields',
      sequence(
        eitherOrder(field('depends_on', ids), field('output_key', this.#id)),
        optional(field('wait_for_all', choice(text('true'), text('false')))),
        optional(field('timeout', SECONDS)),
        optional(field('retry', ATTEMPTS)),
        optional(field('on_error', choice(text('fail'), text('skip'), text('retry')))),
        optional(field('when', CONDITION)),
        optional(field('priority', PRIORITY)),
        optional(field('idempotency_key', KEY)),
        optional(field('cache_ttl', CACHE_SECONDS)),
      ),
    );
  }

  #llm(): Expression {
    const { string, nonBlank, object } = this.#json;
    return this.#object('llm', [
      ['prompt', nonBlank],
      ['system?', string],
      ['model?', string],
      ['output_schema?', object],
    ]);
  }

  #code(capability: AgentDefinition['capabilities'][number]): Expression {
    const { book, string, nonBlank, object } = this.#json;
    switch (capability) {
      case 'python':
        return this.#object('python', [
          ['code', nonBlank],
          ['inputs?', object],
        ]);
      case 'shell':
        return this.#object('shell', [
          ['command', nonBlank],
          ['inputs?', object],
        ]);
      case 'docker':
        return this.#object('docker', [
          ['image', nonBlank],
          ['command', nonBlank],
          ['args?', book.rule('docker-args', this.#json.list(string, 0, null))],
          ['inputs?', object],
        ]);
    }
  }

  #internal(name: InternalAction): Expression {
    const { value } = this.#json;
    const key = this.#quotedId;
    switch (name) {
      case 'set_variable':
        return this.#object(name, [
          ['key', key],
          ['value', value],
        ]);
      case 'delete_variable':
        return this.#object(name, [['key', key]]);
      case 'remove_context_feed':
        return this.#object(name, [['id', key]]);
      case 'add_context_feed':
        return this.#object(name, [['id', key], ['type', this.#feedType()], ...this.#feedFields('source')]);
      case 'update_context_feed':
        return this.#object(name, [['id', key], ['type?', this.#feedType()], ...this.#feedFields('source?')]);
      case 'list_context_feeds':
      case 'clear_context':
        return this.#object(name, []);
    }
  }

  #feedType(): Expression {
    const types = ['on_demand', 'periodic', 'internal', 'relic', 'tool', 'workflow', 'llm'];
    return this.#json.book.lexeme('feed-type', choice(...types.map((type) => text(`"${type}"`))));
  }

  /** What the prompt tells about feeds, and the fields that decide how they are kept (F1). */
  #feedFields(source: 'source' | 'source?'): Shape {
    const { book, boolean, value, string, object } = this.#json;
    const sources = ['internal', 'tool', 'relic', 'workflow', 'llm', 'agent'];
    const sourceType = book.lexeme('feed-source-type', choice(...sources.map((type) => text(`"${type}"`))));
    const seconds = book.lexeme('feed-seconds', SECONDS);
    const onError = book.lexeme('feed-on-error', choice(text('"skip"'), text('"use_cached"'), text('"use_default"')));
    return [
      ['interval?', seconds],
      ['cache_ttl?', seconds],
      ['max_tokens?', book.lexeme('feed-tokens', WHOLE)],
      ['enabled?', boolean],
      [
        source,
        this.#object('feed-source', [
          ['type', sourceType],
          ['name?', string],
          ['action?', string],
          ['params?', object],
        ]),
      ],
      ['on_error?', onError],
      ['default?', value],
    ];
  }

  /** Parameters of which the manifest at hand says nothing: any object. */
  #anything(): Expression {
    const schema = new SchemaGrammar(this.#json, 'any', {}, this.#notes);
    return schema.parameters(this.#isCompact ? ['parameters'] : []);
  }

  /** A name that ends in `?` may be left out. */
  #object(name: string, shape: Shape): Expression {
    const properties = shape.map(([written, value]): Property => ({
      name: written.replace(/\?$/, ''),
      required: !written.endsWith('?'),
      value,
    }));
    return this.#json.book.rule(`${name}-parameters`, this.#json.properties(properties));
  }
}

type Shape = readonly (readonly [name: string, value: Expression])[];

/** A name, null where the type is the name, and the whole parameters object. */
type Call = readonly [name: string | null, parameters: Expression];

function numbers(expression: Expression | null): Expression {
  return expression ?? text('0');
}

const SECONDS = numbers(
  decimals({ min: 0.001, max: limits.maxActionTimeoutMs / 1_000, exclusiveMin: false, exclusiveMax: false }),
);
const CACHE_SECONDS = numbers(
  decimals({ min: 0, max: limits.sessionExpiryMs / 1_000, exclusiveMin: false, exclusiveMax: false }),
);
const ATTEMPTS = numbers(integers({ min: 1, max: limits.maxRetryAttempts, exclusiveMin: false, exclusiveMax: false }));
const PRIORITY = numbers(integers({ min: -9_999, max: 9_999, exclusiveMin: false, exclusiveMax: false }));
const WHOLE = numbers(integers({ min: 1, max: 999_999, exclusiveMin: false, exclusiveMax: false }));
const KEY = repeat(oneOf('A-Za-z0-9_.:-'), 1, 64);
/** A CEL expression in double quotes: its strings take single ones; a `{` could be taken for the body. */
const CONDITION = sequence(noneOf('"\\{[ \u0000-\u001F'), many(noneOf('"\\{\u0000-\u001F')));

function attribute(name: string, value: Expression): Expression {
  return sequence(text(` ${name}="`), value, text('"'));
}

/** A name inside an attribute's quotes. */
function escaped(name: string): string {
  return name.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
