/** Random documents of the protocol, with their expected events. */
import * as fc from 'fast-check';
import type { Json, JsonObject } from '../../src/domain/json.ts';

interface Piece {
  readonly text: string;
  readonly events: readonly string[];
}

const NAMES = ['search', 'fetch', 'a_1', 'http.get', 'größe'];
/** Text without a meaning for the parser, but similar to tags. */
const WORDS = 'word| |\n|x < y|<b>|</b>|List<int>|`code`|1 > 0|é漢\u{1F600}|"|\'|{|}|&lt;|#|<actions>|/|\\'.split('|');
const plain = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 8 }).map((words) => `w${words.join('')}w`);
const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(null, true, false, 0, -1.5, 1e21),
    fc.string({ maxLength: 10 }).map((text) => text.replaceAll('$', '')),
    fc.constantFrom(
      ...'</action>|<response>|</thought>|"quoted"|\\|\n|{"a":1}|it\'s|/* x */|```|<action name="x">'.split('|'),
    ),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'key', '__proto__', '</action>'), tie('value'), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
  ),
})).value;
const parameters = fc.dictionary(fc.constantFrom('q', 'name', 'url', 'text'), json, {
  maxKeys: 3,
  noNullPrototype: true,
}) as fc.Arbitrary<JsonObject>;
const spacing = fc.constantFrom('', '\n', '  ', '\r\n\t');

interface Shape {
  readonly name: string;
  readonly mode: string | null;
  readonly parameters: JsonObject;
  readonly dependsOn: string[] | null;
  readonly outputKey: string | null;
  readonly priority: number | null;
  readonly form: 'full' | 'compact' | 'attributes';
  readonly indent: number;
  readonly quote: string;
  readonly space: string;
}

const shapes: fc.Arbitrary<Shape> = fc.record({
  name: fc.constantFrom(...NAMES),
  mode: fc.constantFrom(null, 'sync', 'async', 'fire_and_forget'),
  parameters,
  dependsOn: fc.option(fc.uniqueArray(fc.constantFrom('x', 'y', 'z-1'), { maxLength: 3 })),
  outputKey: fc.constantFrom(null, 'out', 'k2'),
  priority: fc.constantFrom(null, 0, 7),
  form: fc.constantFrom('full' as const, 'compact' as const, 'attributes' as const),
  indent: fc.constantFrom(0, 2),
  quote: fc.constantFrom('"', "'"),
  space: spacing,
});

type Item = { readonly type: 'action'; readonly shape: Shape } | { readonly type: 'words'; readonly text: string };
const items: fc.Arbitrary<Item> = fc.oneof(
  shapes.map((shape) => ({ type: 'action' as const, shape })),
  plain.map((text) => ({ type: 'words' as const, text })),
);
const REFERENCES: readonly [string, string[]][] = [
  ['$a', ['a']],
  ['${b-c}', ['b-c']],
  ['$d.e[0]', ['d', 'e', '0']],
];
const answers = fc.array(fc.oneof(plain, fc.constantFrom(...REFERENCES)), { maxLength: 4 });

type Block =
  | { readonly type: 'thought'; readonly items: readonly Item[]; readonly tag: string }
  | {
      readonly type: 'response';
      readonly final: string;
      readonly parts: readonly (string | readonly [string, readonly string[]])[];
    }
  | { readonly type: 'item'; readonly item: Item };
const blocks: fc.Arbitrary<Block> = fc.oneof(
  fc.record({
    type: fc.constant('thought' as const),
    items: fc.array(items, { maxLength: 4 }),
    tag: fc.constantFrom('thought', 'THOUGHT'),
  }),
  fc.record({
    type: fc.constant('response' as const),
    final: fc.constantFrom('', ' final="true"', ' final=false'),
    parts: answers,
  }),
  items.map((item) => ({ type: 'item' as const, item })),
);

/** `text`, and the expected result of `lines(parse(text))`. */
export const documents: fc.Arbitrary<Piece> = fc
  .tuple(fc.array(blocks, { maxLength: 6 }), spacing)
  .map(([made, space]) => new Writer(space).write(made));

class Writer {
  readonly #space: string;
  #auto = 0;
  #ids = 0;
  #text = '';
  #events: string[] = [];

  constructor(space: string) {
    this.#space = space;
  }

  write(made: readonly Block[]): Piece {
    let bare: string | null = null;
    for (const block of made) {
      if (block.type === 'item' && block.item.type === 'words') {
        // Adjacent words are one block of bare text.
        bare = bare === null ? block.item.text : bare + this.#space + block.item.text;
        this.#text += block.item.text + this.#space;
        continue;
      }
      this.#closeBare(bare);
      bare = null;
      if (block.type === 'item') this.#action(block.item, false);
      else if (block.type === 'thought') this.#thought(block);
      else this.#response(block);
      this.#text += this.#space;
    }
    this.#closeBare(bare);
    return { text: this.#text, events: this.#events };
  }

  #closeBare(bare: string | null): void {
    if (bare !== null) this.#events.push('text {', `  ${JSON.stringify(bare)}`, '}');
  }

  #thought({ items: inside, tag }: Extract<Block, { type: 'thought' }>): void {
    this.#text += `<${tag}>${this.#space}`;
    this.#events.push('thought {');
    let pending = '';
    let started = false;
    const flush = (): void => {
      const shown = pending.trimEnd();
      if (shown === '') return;
      this.#events.push(`  ${JSON.stringify(shown)}`);
      pending = pending.slice(shown.length);
    };
    for (const item of inside) {
      if (item.type === 'action') {
        flush();
        this.#action(item, true);
      } else {
        this.#text += item.text;
        pending += item.text;
        started = true;
      }
      this.#text += this.#space;
      if (started) pending += this.#space;
    }
    flush();
    this.#text += `</${tag}>`;
    this.#events.push('}');
  }

  #response({ final, parts }: Extract<Block, { type: 'response' }>): void {
    this.#text += `<response${final}>${this.#space}`;
    this.#events.push(`response { final=${final === '' ? 'auto' : final.includes('true')}`);
    let words = '';
    const flush = (): void => {
      if (words !== '') this.#events.push(`  ${JSON.stringify(words)}`);
      words = '';
    };
    for (const part of parts) {
      if (typeof part === 'string') {
        this.#text += part;
        words += part;
      } else {
        // A space separates a following word from the reference.
        this.#text += `${part[0]} ,`;
        flush();
        this.#events.push(
          `  ref ${part[0]} = ${JSON.stringify(part[1].map((step) => (/^\d+$/.test(step) ? Number(step) : step)))}`,
        );
        words = ' ,';
      }
    }
    flush();
    this.#text += `${this.#space}</response>`;
    this.#events.push('}');
  }

  #action(item: Item, embedded: boolean): void {
    if (item.type !== 'action') return;
    const { shape } = item;
    const { name, mode, dependsOn, outputKey, priority, form, quote, space } = shape;
    const own = this.#ids % 2 === 0;
    this.#ids += 1;
    const id = own ? `id${this.#ids}` : `auto_${(this.#auto += 1)}`;
    const attributes: string[] = [];
    const attribute = (key: string, value: string): void => {
      attributes.push(`${key}=${quote}${value}${quote}`);
    };
    if (own) attribute('id', id);
    if (mode !== null) attribute('mode', mode);
    const inTag = form !== 'full';
    if (inTag) attribute('name', name);
    if (inTag && dependsOn !== null) attributes.push(`depends_on=${JSON.stringify(dependsOn)}`);
    if (inTag && outputKey !== null) attribute('output_key', outputKey);
    if (inTag && priority !== null) attributes.push(`priority=${priority}`);
    const fields = {
      name,
      parameters: shape.parameters,
      ...(dependsOn === null ? {} : { depends_on: dependsOn }),
      ...(outputKey === null ? {} : { output_key: outputKey }),
      ...(priority === null ? {} : { priority }),
    };
    const body = form === 'full' ? fields : form === 'compact' ? shape.parameters : { parameters: shape.parameters };
    this.#text += `<action${attributes.map((each) => ` ${each}`).join('')}>${space}${JSON.stringify(body, null, shape.indent)}${space}</action>`;
    this.#events.push(`open tool ${inTag ? name : '?'} ${mode ?? 'sync'}`);
    const described = [`action ${id} tool:${name} ${mode ?? 'sync'} ${JSON.stringify(shape.parameters)}`];
    if (outputKey !== null) described.push(`output_key=${outputKey}`);
    if (dependsOn !== null) described.push(`depends_on=[${dependsOn.join(',')}]`);
    if (priority !== null && priority !== 0) described.push(`priority=${priority}`);
    if (embedded) described.push('embedded');
    this.#events.push(described.join(' '));
  }
}
