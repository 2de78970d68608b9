/** The texts of the parser benchmark: typical model output, ASCII and well-formed, so that markup parsers can read them too. */

const WORDS =
  'the model reads every result before it decides what to do next and keeps short notes about open questions so that nothing is looked up twice while independent work goes on in parallel'.split(
    ' ',
  );

class Source {
  #state = 42;

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 4_294_967_296) * limit);
  }

  words(count: number): string {
    return Array.from({ length: count }, () => WORDS[this.below(WORDS.length)]).join(' ');
  }

  sentences(count: number): string {
    return Array.from({ length: count }, () => {
      const words = this.words(8 + this.below(12));
      return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
    }).join(' ');
  }

  paragraphs(count: number): string {
    return Array.from({ length: count }, () => this.sentences(2 + this.below(4))).join('\n\n');
  }
}

export interface Workload {
  readonly name: string;
  readonly about: string;
  readonly text: string;
}

/** Each of about `chars` characters. */
export function workloads(chars: number): Workload[] {
  return [
    {
      name: 'mixed',
      about: 'reasoning with a call in it, a file that is written, an answer with references, in turn',
      text: repeat(chars, [reasoning, writeFile, answer]),
    },
    { name: 'prose', about: 'reasoning and answers, no call', text: repeat(chars, [thinking, report]) },
    { name: 'calls', about: 'nothing but small calls, the worst case', text: repeat(chars, [call]) },
  ];
}

function repeat(chars: number, parts: readonly ((source: Source, index: number) => string)[]): string {
  const source = new Source();
  const written: string[] = [];
  let length = 0;
  for (let index = 0; length < chars; index += 1) {
    const part = parts[index % parts.length]?.(source, index) ?? '';
    written.push(part);
    length += part.length + 1;
  }
  return written.join('\n');
}

function reasoning(source: Source, index: number): string {
  return `<thought>\n${source.paragraphs(4)}\n${call(source, index)}\n${source.paragraphs(2)}\n</thought>`;
}

function thinking(source: Source): string {
  return `<thought>\n${source.paragraphs(6)}\n</thought>`;
}

function call(source: Source, index: number): string {
  const parameters = {
    url: `https://example.org/${index}?q=${source.words(1)}`,
    headers: { accept: 'text/html' },
    depth: 2,
  };
  const body = JSON.stringify({ name: 'web_fetch', parameters, output_key: `page_${index}` });
  return `<action type="tool" mode="async" id="fetch_${index}" timeout="30">\n${body}\n</action>`;
}

function writeFile(source: Source, index: number): string {
  const content = Array.from(
    { length: 45 },
    (_, line) => `  const row${line} = rows[${line}];\n  log("${source.words(4)}", row${line}.value);`,
  ).join('\n');
  const parameters = { path: `src/${source.words(1)}/${index}.ts`, content };
  return `<action name="write_file" id="write_${index}" depends_on="fetch_${index - 1}">${JSON.stringify(parameters)}</action>`;
}

function report(source: Source): string {
  return `<response final="false">\n## ${source.words(4)}\n\n${source.paragraphs(3)}\n\n- ${source.words(9)}\n- ${source.words(7)}\n</response>`;
}

function answer(source: Source, index: number): string {
  return `<response final="false">
## ${source.words(4)}

${source.paragraphs(2)}

- **${source.words(2)}**: $write_${index - 1}.bytes of \${page_${index - 2}.rows[0].name}
- ${source.words(9)}

\`\`\`ts
log("${source.words(5)}");
\`\`\`

${source.paragraphs(1)}
</response>`;
}

/** Flat strings, as from a text decoder. */
export function cut(text: string, chars: number): string[] {
  const chunks: string[] = [];
  for (let at = 0; at < text.length; at += chars) chunks.push(flat(text.slice(at, at + chars)));
  return chunks;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function flat(text: string): string {
  return decoder.decode(encoder.encode(text));
}
