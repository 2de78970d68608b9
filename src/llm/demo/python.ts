/** Arithmetic and small Python tasks that the demo provider recognises. */

export interface PythonTask {
  readonly key: string;
  readonly label: string;
  readonly code: string;
}

const TASKS: readonly (readonly [pattern: RegExp, task: (value: string, other: string) => PythonTask])[] = [
  [
    /\b(\d{1,4})(?:st|nd|rd|th)? fibonacci\b/i,
    (n) => ({
      key: 'fibonacci',
      label: `Fibonacci number ${n}`,
      code: `a, b = 0, 1\nfor _ in range(${n}):\n    a, b = b, a + b\nprint(a)`,
    }),
  ],
  [
    /\bfactorial of (\d{1,3})\b/i,
    (n) => ({ key: 'factorial', label: `${n} factorial`, code: `import math\nprint(math.factorial(${n}))` }),
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
    /\bpi (?:to|with) (\d{1,4}) (?:digits|decimals|places)\b/i,
    (n) => ({
      key: 'pi',
      label: `pi to ${n} decimals`,
      code: `def arctan(inverse, unit):\n    power = total = unit // inverse\n    n, sign = 3, -1\n    while power:\n        power //= inverse * inverse\n        total += sign * (power // n)\n        n, sign = n + 2, -sign\n    return total\n\nunit = 10 ** (${n} + 10)\ndigits = str(4 * (4 * arctan(5, unit) - arctan(239, unit)) // 10 ** 10)\nprint(digits[0] + "." + digits[1:])`,
    }),
  ],
  [
    /\bsha256 of ["']?([\w .-]{1,100}?)["']?$/i,
    (text) => ({
      key: 'hash',
      label: `the SHA-256 of "${text}"`,
      code: `import hashlib\nprint(hashlib.sha256(${JSON.stringify(text)}.encode()).hexdigest())`,
    }),
  ],
  [
    /\b(\d{1,5}) choose (\d{1,5})\b/i,
    (n, m) => ({ key: 'combinations', label: `${n} choose ${m}`, code: `import math\nprint(math.comb(${n}, ${m}))` }),
  ],
  [
    /\b(average|mean|median|sum) of (\d[\d., and]*)$/i,
    (name, list) => {
      const numbers = list.match(/\d+(?:\.\d+)?/g) ?? [];
      const call = /sum/i.test(name) ? 'sum' : `statistics.${/median/i.test(name) ? 'median' : 'fmean'}`;
      return {
        key: name.toLowerCase(),
        label: `the ${name} of ${numbers.join(', ')}`,
        code: `import statistics\nprint(${call}([${numbers.join(', ')}]))`,
      };
    },
  ],
];

/** A named task: Fibonacci numbers, factorials, primes, digits of pi. */
export function findPythonTask(words: string): PythonTask | null {
  for (const [pattern, task] of TASKS) {
    const found = pattern.exec(words);
    if (found !== null) return task(found[1] ?? '', found[2] ?? '');
  }
  return null;
}

const AROUND =
  /^(?:(?:what(?:'s| is)|how much is|compute|calculate|evaluate|the (?:value|result) of|the)\s+)+|\s*[?=.!:]*$/gi;
const OPERATORS: readonly (readonly [RegExp, string])[] = [
  [/×/g, '*'],
  [/÷/g, '/'],
  [/\^/g, '**'],
  [/\bsquare root of (\d+(?:\.\d+)?)/g, 'sqrt($1)'],
  [/\bto the power of\b/g, '**'],
  [/\bsquared\b/g, '**2'],
  [/\btimes\b/g, '*'],
  [/\bplus\b/g, '+'],
  [/\bminus\b/g, '-'],
  [/\bdivided by\b/g, '/'],
  [/(\d+(?:\.\d+)?)\s*(?:%|percent) of\s+/g, '$1/100*'],
];

/** An arithmetic expression in digits or words, in Python syntax, or null. */
export function findExpression(words: string): string | null {
  let text = words.toLowerCase().trim().replace(AROUND, '');
  for (const [word, sign] of OPERATORS) text = text.replace(word, sign);
  text = text.replace(/\s+/g, ' ').trim();
  const digits = text.replaceAll('sqrt(', '(');
  if (text.length > 500 || !/^[\d\s.+\-*/%()]+$/.test(digits)) return null;
  return /\d\s*[-+*/%]/.test(digits) || digits !== text ? text : null;
}
