/**
 * A second reader of the protocol, for comparison with the parser: a filter that escapes all markup except the
 * protocol's, followed by the platform's HTMLRewriter. It reads only complete texts without errors. A difference
 * shows an error in one of the two readers.
 */
import type { ProtocolEvent } from '../../src/domain/protocol-event.ts';

/** A text as both readers report it, in document order. The text of a thought excludes its actions. */
export type Outline = (
  | { readonly kind: 'text' | 'thought'; text: string }
  | { readonly kind: 'response'; text: string; readonly final: string }
  | {
      readonly kind: 'action';
      readonly id: string | null;
      readonly name: string;
      readonly mode: string;
      readonly embedded: boolean;
      readonly parameters: string;
    }
)[];

const EDGES = /^[\t-\r ]+|[\t-\r ]+$/g;

function givenId(id: string | null): string | null {
  return id?.startsWith('auto_') === true ? null : id;
}

/** The parser's outline. Generated ids are null. */
export function outlineOf(events: readonly ProtocolEvent[]): Outline {
  const outline: Outline = [];
  let block: { text: string } = { text: '' };
  for (const event of events) {
    switch (event.type) {
      case 'text_started':
      case 'thought_started':
      case 'response_started': {
        const opened =
          event.type === 'response_started'
            ? { kind: 'response' as const, text: '', final: String(event.final ?? 'auto') }
            : { kind: event.type === 'text_started' ? ('text' as const) : ('thought' as const), text: '' };
        block = opened;
        outline.push(opened);
        break;
      }
      case 'text':
      case 'thought':
      case 'response':
        block.text += event.delta;
        break;
      case 'response_reference':
        block.text += event.reference.raw;
        break;
      case 'action_declared': {
        const { id, name, mode, embeddedInThought: embedded, parameters } = event.action;
        outline.push({ kind: 'action', id: givenId(id), name, mode, embedded, parameters: JSON.stringify(parameters) });
        break;
      }
      default:
    }
  }
  return outline;
}

/** An opening tag that HTML and the protocol parse identically. */
const SOUND_TAG = /<\w+(?:\s+\w+=(?:"[^"<]*"|'[^'<]*'|(?!["'])[^\s<>]+))*\s*\/?>/y;

/**
 * Escapes everything that is not a tag of the protocol, so that HTML parses only the protocol's tags.
 *
 * @returns null if the text contains a construct that this reader does not support
 */
export function escapeAllButTags(text: string): string | null {
  const tags = /<(thought|action|response)(?=[\s>/])|<\/thought\s*>/gi;
  let html = '';
  let at = 0;
  let inThought = false;
  for (;;) {
    tags.lastIndex = at;
    const found = tags.exec(text);
    if (found === null) break;
    SOUND_TAG.lastIndex = found.index;
    const tag = found[1] === undefined ? found[0] : SOUND_TAG.exec(text)?.[0];
    if (tag === undefined) return null;
    // In the protocol, quotes hide a `>` only in the tags of actions.
    if (found[1]?.toLowerCase() !== 'action' && tag.indexOf('>') < tag.length - 1) return null;
    const name = found[1]?.toLowerCase() ?? '/thought';
    html += escape(text.slice(at, found.index));
    at = found.index + tag.length;
    if (name === '/thought') {
      if (!inThought) return null;
      inThought = false;
      html += '</thought>';
    } else if (tag.endsWith('/>')) {
      if (inThought && name !== 'action') return null;
      html += `${tag.slice(0, -2)}></${name}>`;
    } else if (name === 'thought') {
      if (inThought) return null;
      inThought = true;
      html += tag;
    } else {
      if (inThought && name === 'response') return null;
      const end = name === 'action' ? endOfBody(text, at) : endOf(/<\/response\s*>/gi, text, at);
      if (end === null) return null;
      html += `${tag}${escape(text.slice(at, end[0]))}</${name}>`;
      at = end[1];
    }
  }
  return inThought ? null : html + escape(text.slice(at));
}

/** Start and end of the first `</action>` after a complete JSON object (P7). */
function endOfBody(text: string, from: number): [number, number] | null {
  for (const found of text.slice(from).matchAll(/<\/action\s*>/gi)) {
    const body = text.slice(from, from + found.index);
    if (body.trim() !== '' && !isJson(body)) continue;
    return [from + found.index, from + found.index + found[0].length];
  }
  return null;
}

function endOf(pattern: RegExp, text: string, from: number): [number, number] | null {
  pattern.lastIndex = from;
  const found = pattern.exec(text);
  return found === null ? null : [found.index, found.index + found[0].length];
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function unescape(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

const ATTRIBUTES = ['id', 'name', 'type', 'mode', 'final', 'parameters'] as const;
type Attributes = ReadonlyMap<(typeof ATTRIBUTES)[number], string | null>;

/** HTMLRewriter's outline of the filtered text, fed in pieces of `size` bytes. */
export async function rewriterOutline(html: string, size: number): Promise<Outline> {
  const outline: Outline = [];
  const open: { readonly name: string; readonly attributes: Attributes; text: string }[] = [];
  let bare = '';
  let thought: { text: string } | null = null;
  const closeBare = (): void => {
    const text = unescape(bare).replace(EDGES, '');
    if (text !== '') outline.push({ kind: 'text', text });
    bare = '';
  };
  const rewriter = new HTMLRewriter()
    .on('thought, action, response', {
      element(element) {
        const name = element.tagName;
        const attributes = new Map(
          ATTRIBUTES.map((key) => [key, unescape(element.getAttribute(key) ?? '').trim() || null]),
        );
        if (open.length === 0) closeBare();
        open.push({ name, attributes, text: '' });
        if (name === 'thought') {
          const opened = { kind: 'thought' as const, text: '' };
          thought = opened;
          outline.push(opened);
        }
        element.onEndTag(() => {
          const closed = open.pop();
          if (closed === undefined) return;
          const text = unescape(closed.text);
          if (closed.name === 'action') outline.push(readAction(closed.attributes, text, open.length > 0));
          else if (closed.name === 'response') {
            const final = closed.attributes.get('final') ?? 'auto';
            outline.push({ kind: 'response', text: text.replace(EDGES, '').replaceAll('$$', '$'), final });
          } else if (thought !== null) thought.text = text.replace(EDGES, '');
        });
      },
    })
    .onDocument({
      text(piece) {
        const inner = open.at(-1);
        if (inner === undefined) bare += piece.text;
        else inner.text += piece.text;
      },
    });
  const bytes = new TextEncoder().encode(html);
  let at = 0;
  const pieces = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.slice(at, (at += size)));
    },
  });
  await rewriter.transform(new Response(pieces)).arrayBuffer();
  closeBare();
  return outline;
}

/** Types that need no name, and whose body is the parameters if it has no `parameters` field (P6). */
const SELF_NAMED: ReadonlySet<string> = new Set(['python', 'shell', 'docker', 'llm']);

function readAction(attributes: Attributes, text: string, embedded: boolean): Outline[number] {
  const body = JSON.parse(text.trim() || '{}') as Record<string, unknown>;
  const inTag = attributes.get('parameters') ?? null;
  const wrapped = ['parameters', 'arguments', 'params'].find((key) => Object.hasOwn(body, key));
  const type = attributes.get('type') ?? String(body['type'] ?? 'tool');
  // In the compact form, `id`, `name` and `mode` in the body are parameters (P18).
  const named = attributes.get('name') !== null || SELF_NAMED.has(type);
  const compact = named && wrapped !== 'parameters' && (inTag === null || Object.keys(body).length > 0);
  const own = (key: 'id' | 'name' | 'mode'): string | null => {
    const value = (compact ? undefined : body[key]) ?? attributes.get(key);
    return typeof value === 'string' ? value.trim() || null : null;
  };
  const given = wrapped === undefined ? JSON.parse(inTag ?? '{}') : body[wrapped];
  return {
    kind: 'action',
    id: givenId(own('id')),
    name: attributes.get('name') ?? own('name') ?? type,
    mode: (own('mode') ?? 'sync')
      .toLowerCase()
      .replace(/[-\s]+/g, '_')
      .replace('background', 'fire_and_forget'),
    embedded,
    parameters: JSON.stringify(compact ? body : given),
  };
}
