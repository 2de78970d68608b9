/** Sums and small Python tasks that the demo provider recognises in words. */

export interface PythonTask {
  readonly key: string;
  readonly label: string;
  readonly code: string;
}

/** Python refuses to print integers past 4,300 digits unless told otherwise. */
const LONG_NUMBERS = 'import sys\nsys.set_int_max_str_digits(0)\n';

const TASKS: readonly (readonly [pattern: RegExp, task: (n: string, m: string) => PythonTask])[] = [
  [
    /\bsum of (?:all |the )*(squares|cubes) of (?:all |the )*(?:first )?(\d{1,7})\b/i,
    (power, n) => ({
      key: 'total',
      label: `the sum of the ${power} of 1 to ${n}`,
      code: `print(sum(n ** ${power === 'cubes' ? 3 : 2} for n in range(1, ${n} + 1)))`,
    }),
  ],
  [
    /\b(squares|cubes) of (?:all |the )*(?:first )?(\d{1,4})\b/i,
    (power, n) => ({
      key: power,
      label: `the ${power} of 1 to ${n}`,
      code: `print([n ** ${power === 'cubes' ? 3 : 2} for n in range(1, ${n} + 1)])`,
    }),
  ],
  [
    /\bsum of (?:all |the )*first (\d{1,4}) primes?\b/i,
    (n) => ({
      key: 'total',
      label: `the sum of the first ${n} primes`,
      code: `primes, n = [], 2\nwhile len(primes) < ${n}:\n    if all(n % p for p in primes):\n        primes.append(n)\n    n += 1\nprint(sum(primes))`,
    }),
  ],
  [
    /\bsum of (?:all |the )*first (\d{1,8}) (?:integers|numbers|natural numbers|whole numbers)\b/i,
    (n) => ({ key: 'total', label: `the sum of 1 to ${n}`, code: `print(sum(range(1, ${n} + 1)))` }),
  ],
  [
    /\b(\d{1,5}) choose (\d{1,5})\b/i,
    (n, m) => ({ key: 'combinations', label: `${n} choose ${m}`, code: `import math\nprint(math.comb(${n}, ${m}))` }),
  ],
  [
    /\bpython(?:'s)? version\b|\bversion of python\b/i,
    () => ({ key: 'version', label: 'the version', code: 'import sys\nprint(sys.version)' }),
  ],
  [
    /\brandom number(?: (?:between|from) (\d{1,9}) (?:and|to) (\d{1,9}))?/i,
    (n, m) => ({
      key: 'random',
      label: 'a random number',
      code: `import random\nprint(random.randint(${n || 1}, ${m || 100}))`,
    }),
  ],
  [
    /\b(sha-?256|sha-?1|md5)(?: hash| sum)?(?: of)?(?: the)?(?: word| string| text)?:? ["']?([\w .-]{1,100}?)["']?$/i,
    hashTask,
  ],
  [
    /\bhash(?: of)?(?: the)?(?: word| string| text)?:? ["']?([\w .-]{1,100}?)["']?(?: (?:with|by|using) (sha-?256|sha-?1|md5))?$/i,
    (text, algorithm) => hashTask(algorithm || 'sha256', text),
  ],
  [
    /\bfirst (\d{1,4}) fibonacci/i,
    (n) => ({
      key: 'fibonacci',
      label: `the first ${n} Fibonacci numbers`,
      code: `numbers, a, b = [], 0, 1\nfor _ in range(${n}):\n    numbers.append(a)\n    a, b = b, a + b\nprint(numbers)`,
    }),
  ],
  [
    /\b(\d{1,6})(?:st|nd|rd|th)? fib(?:onacci)?\b|\bfib(?:onacci)?(?: number)?(?: of)?\s*\(?(\d{1,6})\b/i,
    (n) => ({
      key: 'fibonacci',
      label: `Fibonacci number ${n}`,
      code: `${Number(n) > 20_000 ? LONG_NUMBERS : ''}a, b = 0, 1\nfor _ in range(${n}):\n    a, b = b, a + b\nprint(a)`,
    }),
  ],
  [
    /\bfactorial(?: of)?\s*\(?(\d{1,5})\b|\b(\d{1,5})(?:!(?!=)| factorial\b)/i,
    (n) => ({
      key: 'factorial',
      label: `${n} factorial`,
      code: `${Number(n) > 1_500 ? LONG_NUMBERS : ''}import math\nprint(math.factorial(${n}))`,
    }),
  ],
  [
    /\bfirst (\d{1,4}) primes?\b/i,
    (n) => ({
      key: 'primes',
      label: `the first ${n} primes`,
      code: `primes, n = [], 2\nwhile len(primes) < ${n}:\n    if all(n % p for p in primes):\n        primes.append(n)\n    n += 1\nprint(primes)`,
    }),
  ],
  [
    /\b(\d{1,4})(?:st|nd|rd|th) prime\b/i,
    (n) => ({
      key: 'prime',
      label: `prime number ${n}`,
      code: `primes, n = [], 2\nwhile len(primes) < ${n}:\n    if all(n % p for p in primes):\n        primes.append(n)\n    n += 1\nprint(primes[-1])`,
    }),
  ],
  [
    /\bprimes?(?: numbers?)? (?:below|under|up to|to|less than|from 1 to)\s*(\d{1,6})\b/i,
    (n) => ({
      key: 'primes',
      label: `the primes up to ${n}`,
      code: `print([n for n in range(2, ${n} + 1) if all(n % d for d in range(2, int(n ** 0.5) + 1))])`,
    }),
  ],
  [
    /\bis (\d{1,12}) (?:a )?prime\b/i,
    (n) => ({
      key: 'is_prime',
      label: `whether ${n} is prime`,
      code: `n = ${n}\nprint(n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1)))`,
    }),
  ],
  [
    /\b(?:sum|total|add)(?: up)? (?:of )?(?:all )?(?:the )?(?:numbers|integers|whole numbers)?\s*(?:from )?(\d{1,8})\s*(?:to|\.\.|-|through)\s*(\d{1,8})\b/i,
    (n, m) => ({ key: 'total', label: `the sum of ${n} to ${m}`, code: `print(sum(range(${n}, ${m} + 1)))` }),
  ],
  [
    /\b(\d{1,4}) (?:digits|decimals|places) of pi\b|\bpi (?:to|with) (\d{1,4}) (?:digits|decimals|places)\b/i,
    (n) => ({
      key: 'pi',
      label: `pi to ${n} decimals`,
      code: `def arctan(inverse, unit):\n    power = total = unit // inverse\n    n, sign = 3, -1\n    while power:\n        power //= inverse * inverse\n        total += sign * (power // n)\n        n, sign = n + 2, -sign\n    return total\n\nunit = 10 ** (${n} + 10)\ndigits = str(4 * (4 * arctan(5, unit) - arctan(239, unit)) // 10 ** 10)\nprint(digits[0] + "." + digits[1:])`,
    }),
  ],
];

function hashTask(algorithm: string, text: string): PythonTask {
  const name = algorithm.toLowerCase().replace('-', '');
  return {
    key: 'hash',
    label: `the ${name} of "${text}"`,
    code: `import hashlib\nprint(hashlib.${name}(${JSON.stringify(text)}.encode()).hexdigest())`,
  };
}

/** A task that has a name: Fibonacci numbers, factorials, primes, sums of ranges, digits of pi. */
export function findPythonTask(clause: string): PythonTask | null {
  for (const [pattern, task] of TASKS) {
    const found = pattern.exec(clause);
    if (found === null) continue;
    const [first = '', second = ''] = found.slice(1).filter((group) => group !== undefined);
    return task(first, second);
  }
  return null;
}

export interface NumberList {
  readonly key: string;
  readonly label: string;
  readonly numbers: readonly number[];
  /** The same for the calculator tool, where it can. */
  readonly calculator: string | null;
  readonly expression: string;
}

const LIST_TASKS: Readonly<Record<string, { expression: string; calculator: string | null }>> = {
  average: { expression: 'statistics.fmean(numbers)', calculator: 'mean' },
  mean: { expression: 'statistics.fmean(numbers)', calculator: 'mean' },
  median: { expression: 'statistics.median(numbers)', calculator: null },
  sum: { expression: 'sum(numbers)', calculator: 'sum' },
  total: { expression: 'sum(numbers)', calculator: 'sum' },
  product: { expression: 'math.prod(numbers)', calculator: null },
  maximum: { expression: 'max(numbers)', calculator: 'max' },
  largest: { expression: 'max(numbers)', calculator: 'max' },
  minimum: { expression: 'min(numbers)', calculator: 'min' },
  smallest: { expression: 'min(numbers)', calculator: 'min' },
  add: { expression: 'sum(numbers)', calculator: 'sum' },
  multiply: { expression: 'math.prod(numbers)', calculator: null },
  sort: { expression: 'sorted(numbers)', calculator: null },
  'standard deviation': { expression: 'statistics.stdev(numbers)', calculator: null },
};

/** "the average of 1, 2 and 4", "sort 3, 1, 2". */
export function findNumberList(words: string): NumberList | null {
  const found = new RegExp(
    `\\b(${Object.keys(LIST_TASKS).join('|')})\\b(?: of)?(?: the numbers)?:?\\s+(-?\\d[\\d\\s.,and-]*)`,
    'i',
  ).exec(words);
  const name = found?.[1]?.toLowerCase() ?? '';
  const task = LIST_TASKS[name];
  const numbers = [...(found?.[2] ?? '').matchAll(/-?\d+(?:\.\d+)?/g)].map(([digits]) => Number(digits));
  if (task === undefined || numbers.length < 2) return null;
  return {
    key: name.replace(' ', '_'),
    label:
      name === 'add' || name === 'multiply'
        ? `${name} ${numbers.join(', ')}`
        : name === 'sort'
          ? `${numbers.join(', ')} in order`
          : `the ${name} of ${numbers.join(', ')}`,
    numbers,
    calculator: task.calculator === null ? null : `${task.calculator}(${numbers.join(', ')})`,
    expression: task.expression,
  };
}

export function numberListTask({ numbers, expression }: NumberList): string {
  return `import math, statistics\nnumbers = ${JSON.stringify(numbers)}\nprint(${expression})`;
}

export interface Sum {
  readonly key: string;
  readonly label: string;
  readonly code: string;
  /** The expression in the calculator's spelling. */
  readonly calculator: string;
  /** It raises to a power: Python's whole numbers are exact at any size. */
  readonly power: boolean;
}

const FUNCTIONS = 'sqrt|cbrt|abs|round|min|max|log10|log2|log|sin|cos|tan|exp|floor|ceil|factorial|gcd|pi|e';
const PYTHON_WORDS = new RegExp(`\\b(?:${FUNCTIONS})\\b`);
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/[×·]/g, '*'],
  [/÷/g, '/'],
  [/−/g, '-'],
  [/(\d),(?=\d{3}\b)/g, '$1'],
  [/\bsquare root of\s+(\d+(?:\.\d+)?|\([^()]*\))/gi, 'sqrt($1)'],
  [/\b(?:raised )?to the (?:power (?:of )?)?(\d+)(?:st|nd|rd|th)?(?: power)?\b/gi, '**$1'],
  [/\bmultiply (\S+) (?:by|and) (\S+)/gi, '$1*$2'],
  [/\bdivide (\S+) by (\S+)/gi, '$1/$2'],
  [/\bsubtract (\S+) from (\S+)/gi, '$2-$1'],
  [/\badd (\S+) (?:and|to) (\S+)/gi, '$1+$2'],
  [/\bsquared\b/gi, '**2'],
  [/\bcubed\b/gi, '**3'],
  [/\b(?:times|multiplied by)\b/gi, '*'],
  [/\bplus\b/gi, '+'],
  [/\bminus\b/gi, '-'],
  [/\b(?:divided by|over)\b/gi, '/'],
  [/\bmod(?:ulo)?\b/gi, '%'],
  [/(\d+(?:\.\d+)?)\s*(?:%|percent) of\s+/gi, '$1/100*'],
  [/\bof\b/gi, ' '],
];
const AROUND =
  /^(?:(?:what(?:'s| is| does| do)|how much(?: is| does)?|compute|calculate|evaluate|work out|solve|find|give me|and|the (?:value|result) of|value of|the)\s+)+|\s*(?:\b(?:equals?|come to|make|in|with|using|on)\b.*)?[?=.!:]*$/gi;

/** An arithmetic expression in digits or words, or null. */
export function findExpression(words: string): Sum | null {
  let text = words.toLowerCase().trim();
  text = text.replace(AROUND, '').trim();
  for (const [word, sign] of WORDS) text = text.replace(word, sign);
  text = text.replace(/\s+/g, ' ').trim();
  if (text.length > 500 || !/\d/.test(text)) return null;
  const bare = text.replace(new RegExp(`\\b(?:${FUNCTIONS})\\b`, 'g'), '');
  if (/[^\d\s.+\-*/%^(),]/.test(bare) || !balanced(text)) return null;
  if (!/[+*/%^]|\d\s*-\s*\d|\d\s*-\s*\(|\w\s*\(/.test(text)) return null;
  const python = text.replaceAll('^', '**');
  const power = python.includes('**');
  const long = /\*\*\s*\(?\d{4,}/.test(python) ? LONG_NUMBERS : '';
  const imports = PYTHON_WORDS.test(python) ? 'from math import *\n' : '';
  return {
    key: power ? 'power' : 'result',
    label: python,
    code: `${long}${imports}print(${python})`,
    calculator: python.replaceAll('**', '^'),
    power,
  };
}

function balanced(text: string): boolean {
  let depth = 0;
  for (const character of text) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (depth < 0) return false;
  }
  return depth === 0;
}
