/** XGrammar, the grammar engine of vLLM and others: tests texts against a grammar, and generates texts from it. */
import { createRequire, registerHooks } from 'node:module';

/** The part of the package that is used here. */
interface XGrammar {
  readonly TokenizerInfo: {
    createTokenizerInfo(words: string[], kind: 'raw', space: false, size: undefined, stop: number[]): Promise<object>;
  };
  readonly GrammarCompiler: {
    createGrammarCompiler(tokenizer: object, cache: false): Promise<{ compileGrammar(gbnf: string): Promise<object> }>;
  };
  readonly GrammarMatcher: { createGrammarMatcher(compiled: object): Promise<Matcher> };
}

interface Matcher {
  reset(): void;
  acceptToken(token: number): boolean;
  _acceptString(text: string): boolean;
  /** One bit for each token that can come next. */
  getNextTokenBitmask(): Promise<Int32Array>;
}

/** The package is CommonJS, but declares itself an ES module. */
function load(): XGrammar {
  const hooks = registerHooks({
    load: (url, context, next) =>
      next(url, url.includes('web-xgrammar') ? { ...context, format: 'commonjs' } : context),
  });
  try {
    const require = createRequire(import.meta.url);
    return require('@mlc-ai/web-xgrammar') as XGrammar;
  } finally {
    hooks.deregister();
  }
}

const { GrammarCompiler, GrammarMatcher, TokenizerInfo } = load();

/** Characters that end a text: with them, random texts become complete. */
const CLOSING = ['"', '}', ']', '>', '</action>', '</thought>', '</response>', '\n```\n'];
const OPENING = ['<action', '<thought>', '<response', '</', '```', ' type="', ' name="', ' id="', '"$', '${', '\\u'];
const CHARACTERS = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));
const VOCABULARY = [...new Set([...CLOSING, ...OPENING, ...CHARACTERS, '\n', '\t', 'é', '中', '😀'])];
/** After the last word: the end of the text. */
const STOP = VOCABULARY.length;
const tokenizer = await TokenizerInfo.createTokenizerInfo([...VOCABULARY, '<stop>'], 'raw', false, undefined, [STOP]);
const compiler = await GrammarCompiler.createGrammarCompiler(tokenizer, false);

export interface Engine {
  /** @returns null if the grammar accepts the text, otherwise the offset of the first refused character */
  refusal(text: string): number | null;
  /** A random text of the grammar; the same seed gives the same text. */
  write(seed: number): Promise<string>;
}

/** @throws when XGrammar refuses the grammar */
export async function engineFor(gbnf: string): Promise<Engine> {
  const matcher = await GrammarMatcher.createGrammarMatcher(await compiler.compileGrammar(gbnf));
  return {
    refusal(text) {
      matcher.reset();
      let at = 0;
      for (const character of text) {
        // oxlint-disable-next-line no-underscore-dangle -- the only method that takes text instead of a token
        if (!matcher._acceptString(character)) return at;
        at += character.length;
      }
      return matcher.acceptToken(STOP) ? null : at;
    },
    async write(seed) {
      matcher.reset();
      const random = generator(seed);
      let text = '';
      for (;;) {
        const mask = await matcher.getNextTokenBitmask();
        const isAllowed = (token: number): boolean => (((mask[token >> 5] ?? 0) >>> (token & 31)) & 1) === 1;
        // the probability of ending grows with the length
        const hurry = random() < text.length / 400;
        if (isAllowed(STOP) && (hurry || random() < 0.2)) return text;
        const allowed = [...VOCABULARY.keys()].filter(isAllowed);
        const closing = allowed.filter((token) => token < CLOSING.length);
        const from = closing.length > 0 && (hurry || random() < 0.2) ? closing : allowed;
        const token = from[Math.floor(random() * from.length)];
        if (token === undefined) throw new Error(`The grammar leads nowhere after ${JSON.stringify(text)}`);
        matcher.acceptToken(token);
        text += VOCABULARY[token] ?? '';
      }
    },
  };
}

/** Numbers from 0 to 1. */
function generator(seed: number): () => number {
  let state = (Math.imul(seed + 1, 2_654_435_761) ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    // the low bits of this generator are not random enough
    return (state >>> 8) / 16_777_216;
  };
}
