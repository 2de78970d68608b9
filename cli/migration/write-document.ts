/**
 * Writes a rewritten manifest as YAML. Parts that did not change keep their form and their comments, and moved parts take
 * their comments with them. Comments of parts that are gone are collected at the end.
 */
import { isDeepStrictEqual } from 'node:util';
import { Document, isAlias, isCollection, isMap, isNode, isPair, isScalar, isSeq, parseDocument, visit } from 'yaml';
import { Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import type { Node } from 'yaml';
import { isJsonObject } from '../../src/domain/json.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import type { FieldPath } from '../../src/catalog/check/problem.ts';
import { readYaml } from '../../src/catalog/read/yaml-file.ts';
import type { Draft } from './draft.ts';

/** What a person has to know, at the author's path. */
export interface Remark {
  readonly path: FieldPath;
  readonly message: string;
}

/** A part that may have a comment before it. */
interface Place {
  readonly node: Node;
  /** In the author's text. */
  readonly offset: number;
}

/** Longer lines of text are not broken: they are the author's. */
const AS_WRITTEN = { lineWidth: 0 } as const;

/**
 * The YAML of a document.
 *
 * @param source the text of the author's document
 * @param value the value to write: the draft's, or a part of it
 * @param remarks become comments that begin with `migrate:`, each before the part that follows its place
 */
export function writeDocument(source: string, draft: Draft, value: JsonObject, remarks: readonly Remark[]): string {
  const text = new DocumentWriter(source, draft).write(value, remarks);
  const [read] = readYaml(text).documents;
  if (read !== undefined && isDeepStrictEqual(read.value, value)) return text;
  // an unusual place of a comment
  const head = remarks.map(({ message }) => `# migrate: ${oneLine(message)}\n`).join('');
  return `${head}${new Document(value).toString(AS_WRITTEN)}`;
}

class DocumentWriter {
  readonly #document: Document.Parsed;
  readonly #draft: Draft;
  /** Whether the author has blanks inside of brackets. */
  readonly #padding: boolean;
  /** The author's nodes whose comments are in the new document. */
  readonly #used = new Set<unknown>();
  /** Keys and items of the new document that may have a comment before them, with their place in the author's text. */
  readonly #places: Place[] = [];

  constructor(source: string, draft: Draft) {
    this.#padding = /[[{] \S/.test(source);
    this.#document = parseDocument(source, { version: '1.2', uniqueKeys: false });
    this.#draft = draft;
  }

  write(value: JsonObject, remarks: readonly Remark[]): string {
    const { contents } = this.#document;
    const document = new Document<Node>();
    document.commentBefore = this.#document.commentBefore;
    document.contents = this.#built([], value);
    const end: string[] = [];
    for (const { path, message } of remarks.toSorted((a, b) => this.#offsetOf(a.path) - this.#offsetOf(b.path))) {
      const offset = this.#offsetOf(path);
      const next = this.#places.reduce<Place | null>(
        (best, one) => (one.offset >= offset && (best === null || one.offset < best.offset) ? one : best),
        null,
      );
      const line = ` migrate: ${oneLine(message)}`;
      if (next === null) end.push(line);
      else next.node.commentBefore = [next.node.commentBefore, line].filter(Boolean).join('\n');
    }
    const comments = [...this.#lostComments(contents), this.#document.comment, ...end];
    document.comment = comments.filter(Boolean).join('\n') || null;
    return document.toString({ ...AS_WRITTEN, flowCollectionPadding: this.#padding });
  }

  #built(path: FieldPath, value: Json): Node {
    const place = this.#draft.original(path);
    const written = this.#nodeAt(place);
    if (written !== null && !this.#used.has(written) && isSame(written, value, this.#document)) {
      this.#useAll(written);
      return written.clone() as Node;
    }
    const built = Array.isArray(value)
      ? this.#list(path, value)
      : isJsonObject(value)
        ? this.#map(path, value)
        : new Scalar(value);
    if (written !== null && !this.#used.has(written) && isCollection(written) === isCollection(built)) {
      this.#used.add(written);
      if (written.commentBefore) built.commentBefore = written.commentBefore;
      if (written.comment) built.comment = written.comment;
      if (isCollection(written) && isCollection(built) && isMap(written) === isMap(built))
        built.flow = written.flow === true || built.items.length === 0;
    }
    return built;
  }

  #list(path: FieldPath, value: readonly Json[]): YAMLSeq {
    const list = new YAMLSeq();
    list.flow = value.length === 0;
    for (const [index, item] of value.entries()) {
      const at = [...path, index];
      const node = this.#built(at, item);
      this.#places.push({ node, offset: this.#offsetOf(this.#draft.original(at)) });
      list.items.push(node);
    }
    return list;
  }

  /** The members in the order in which the author wrote them. */
  #map(path: FieldPath, value: JsonObject): YAMLMap {
    const map = new YAMLMap();
    map.flow = Object.keys(value).length === 0;
    const members = Object.entries(value).map(([name, member]) => {
      const at = [...path, name];
      const place = this.#draft.original(at);
      // what follows from the whole document stands at its end
      const isOfWhole = place.length === 1 && place[0] === 'kind' && name !== 'kind';
      return { name, member, at, place, offset: isOfWhole ? Infinity : this.#offsetOf(place) };
    });
    for (const { name, member, at, place, offset } of members.toSorted((a, b) => a.offset - b.offset)) {
      const key = new Scalar<unknown>(name);
      const before = this.#keyAt(place);
      if (before !== null && !this.#used.has(before)) {
        this.#used.add(before);
        if (before.commentBefore) key.commentBefore = before.commentBefore;
        if (before.spaceBefore) key.spaceBefore = true;
      }
      this.#places.push({ node: key, offset });
      map.items.push(new Pair(key, this.#built(at, member)));
    }
    return map;
  }

  /** The comments of the author's nodes that are not in the new document. */
  #lostComments(contents: Node | null): string[] {
    const lost: string[] = [];
    if (contents !== null) {
      visit(contents, {
        Node: (_key, node) => {
          if (!this.#used.has(node)) lost.push(...[node.commentBefore, node.comment].flatMap((one) => one ?? []));
        },
      });
    }
    return lost;
  }

  #useAll(node: Node): void {
    visit(node, { Node: (_key, one) => void this.#used.add(one) });
  }

  #nodeAt(path: FieldPath): Node | null {
    let node: unknown = this.#document.contents;
    for (const step of path) {
      if (isAlias(node)) node = node.resolve(this.#document);
      if (isSeq(node)) node = typeof step === 'number' ? node.items[step] : undefined;
      else if (isMap(node)) node = pairOf(node, step)?.value;
      else return null;
    }
    return isNode(node) ? node : null;
  }

  /** The key of a member that the author wrote. */
  #keyAt(path: FieldPath): Node | null {
    const owner = this.#nodeAt(path.slice(0, -1));
    const step = path.at(-1);
    const key = isMap(owner) && step !== undefined ? pairOf(owner, step)?.key : null;
    return isNode(key) ? key : null;
  }

  #offsetOf(path: FieldPath): number {
    for (let length = path.length; length > 0; length -= 1) {
      const part = path.slice(0, length);
      const node = this.#keyAt(part) ?? this.#nodeAt(part);
      if (node !== null) return node.range?.[0] ?? 0;
    }
    return 0;
  }
}

function pairOf(map: YAMLMap, name: string | number): Pair | undefined {
  return map.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(name));
}

/** Whether a node says exactly this, without anchors and aliases, which a copy would break. */
function isSame(node: Node, value: Json, document: Document.Parsed): boolean {
  let isPlain = true;
  visit(node, {
    Alias: () => void (isPlain = false),
    Node: (_key, one) => {
      if ('anchor' in one && one.anchor !== undefined) isPlain = false;
    },
  });
  return isPlain && isDeepStrictEqual(node.toJS(document), value);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
