/** A long conversation, always the same: messages about everyday matters, in which the user mentions facts, and changes some later. */

/** One fact: its name, its current value, and the turn in which the user said it last, 1-based. */
export interface PlantedFact {
  readonly name: string;
  readonly value: string;
  readonly turn: number;
}

export interface LongConversation {
  readonly messages: readonly string[];
  readonly answers: readonly string[];
  readonly facts: readonly PlantedFact[];
}

/** A turn in every three has a fact; one in five of these changes an earlier one. */
const TURNS_PER_FACT = 3;
const FACTS_PER_CHANGE = 5;
const SENTENCES = 6;

const WORDS =
  'the order plan trip report draft table room bill train hotel list group note call file price week visit desk paper question answer box lamp door garden bridge market river window'.split(
    ' ',
  );

/** How the user says a fact. The summariser of the benchmark looks for these words. */
function factSentence(name: string, value: string, isChange: boolean): string {
  return isChange ? `I was wrong before, the ${name} is now ${value}.` : `Please note that the ${name} is ${value}.`;
}

export function conversationOf(turns: number): LongConversation {
  const random = numbers(turns);
  const sentence = (): string => {
    const words = Array.from(
      { length: 10 + Math.floor(random() * 6) },
      () => WORDS[Math.floor(random() * WORDS.length)],
    );
    return `Then ${words.join(' ')}.`;
  };
  const facts = new Map<string, PlantedFact>();
  const messages: string[] = [];
  const answers: string[] = [];
  for (let turn = 1; turn <= turns; turn += 1) {
    const sentences = Array.from({ length: SENTENCES }, sentence);
    if (turn % TURNS_PER_FACT === 1) {
      const known = [...facts.keys()];
      const count = Math.floor(turn / TURNS_PER_FACT) + 1;
      const isChange = count % FACTS_PER_CHANGE === 0;
      const name = isChange ? (known[Math.floor(random() * known.length)] ?? 'code 0') : `code ${known.length + 1}`;
      const value = `V${turn}X${Math.floor(random() * 9_000) + 1_000}`;
      facts.set(name, { name, value, turn });
      sentences.splice(Math.floor(random() * (SENTENCES + 1)), 0, factSentence(name, value, isChange));
    }
    messages.push(sentences.join(' '));
    answers.push(Array.from({ length: SENTENCES }, sentence).join(' '));
  }
  return { messages, answers, facts: [...facts.values()] };
}

/** Uniform in [0, 1), the same for each seed (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
