/** The same readers in workerd, and HTMLRewriter. workerd's clock stops while code runs, so the caller measures the time. */
import { CONTESTANTS } from './contestants.ts';
import { cut, workloads } from './text.ts';

const cache = new Map<string, readonly string[]>();

function chunksOf(workload: string, chars: number, size: number): readonly string[] {
  const key = `${workload}/${chars}/${size}`;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const chunks = cut(workloads(chars).find(({ name }) => name === workload)?.text ?? '', size);
  cache.set(key, chunks);
  return chunks;
}

/** The used part of the platform's HTMLRewriter; the benchmark is type-checked with Node's types. */
interface TextPiece {
  readonly text: string;
  readonly lastInTextNode: boolean;
}
declare class HTMLRewriter {
  on(selector: string, handlers: { text: (piece: TextPiece) => void }): HTMLRewriter;
  transform(response: Response): Response;
}

async function rewrite(chunks: readonly string[]): Promise<number> {
  const encoder = new TextEncoder();
  let body = '';
  let text = 0;
  const rewriter = new HTMLRewriter().on('action', {
    text(piece) {
      body += piece.text;
      if (!piece.lastInTextNode) return;
      JSON.parse(body);
      body = '';
    },
  });
  rewriter.on('thought, response', {
    text(piece) {
      text += piece.text.length;
    },
  });
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const done = rewriter.transform(new Response(readable)).arrayBuffer();
  const writer = writable.getWriter();
  for (const chunk of chunks) await writer.write(encoder.encode(chunk));
  await writer.close();
  await done;
  return text;
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { searchParams } = new URL(request.url);
    const chunks = chunksOf(
      searchParams.get('text') ?? '',
      Number(searchParams.get('chars')),
      Number(searchParams.get('size')),
    );
    const name = searchParams.get('reader') ?? '';
    const passes = Number(searchParams.get('passes'));
    const contestant = CONTESTANTS.find((one) => one.name === name);
    let read = 0;
    for (let pass = 0; pass < passes; pass += 1) {
      if (contestant !== undefined) read += contestant.read(chunks).text;
      else if (name === 'HTMLRewriter') read += await rewrite(chunks);
    }
    return Response.json({ read });
  },
};
