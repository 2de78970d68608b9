/** The tasks of the rehearsal: the request, the plan of a careful model, and the expected result. */

interface PlannedAction {
  readonly id: string;
  readonly name: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface Task {
  readonly name: string;
  readonly ask: string;
  readonly actions: readonly PlannedAction[];
  /** With references, because a model writes it before it knows the values. */
  readonly answer: string;
  /** A text that the final answer must contain. */
  readonly expect: string;
}

function calculation(id: string, expression: string): PlannedAction {
  return { id, name: 'calculator', parameters: { expression } };
}

export const TASKS: readonly Task[] = [
  {
    name: 'one calculation',
    ask: 'What is 17 times 23 plus 4?',
    actions: [calculation('a', '17 * 23 + 4')],
    answer: 'The result is $a.',
    expect: '395',
  },
  {
    name: 'two side by side',
    ask: 'What are 6 times 7 and 2 to the power of 64?',
    actions: [calculation('a', '6 * 7'), calculation('b', '2^64')],
    answer: 'They are $a and $b.',
    expect: '42 and 18446744073709551616',
  },
  {
    name: 'a value handed on',
    ask: 'Take the number 21 and double it.',
    actions: [{ id: 'a', name: 'echo', parameters: { n: 21 } }, calculation('b', '$a.n * 2')],
    answer: 'Twice that is $b.',
    expect: 'that is 42',
  },
  {
    name: 'a query',
    ask: 'Which of the things costs more than ten?',
    actions: [
      {
        id: 'q',
        name: 'json_query',
        parameters: {
          data: {
            items: [
              { name: 'pen', price: 2 },
              { name: 'lamp', price: 30 },
            ],
          },
          query: 'items[?price > `10`].name | [0]',
        },
      },
    ],
    answer: 'It is the $q.',
    expect: 'the lamp',
  },
  {
    name: 'a query on a result',
    ask: 'What is the largest number in the list?',
    actions: [
      { id: 'e', name: 'echo', parameters: { rows: [3, 977, 4] } },
      { id: 'm', name: 'json_query', parameters: { data: '$e.rows', query: 'max(@)' } },
    ],
    answer: 'The largest is $m.',
    expect: 'largest is 977',
  },
  {
    name: 'a part of a result',
    ask: 'What does the echo say?',
    actions: [{ id: 'e', name: 'echo', parameters: { text: 'bonjour', other: 1 } }],
    answer: 'It says $e.text.',
    expect: 'says bonjour',
  },
  {
    name: 'a chain of three',
    ask: 'Square ten, add one, double it.',
    actions: [calculation('a', '10 * 10'), calculation('b', '$a + 1'), calculation('c', '$b * 2')],
    answer: 'In the end it is $c.',
    expect: 'is 202',
  },
  {
    name: 'a mean',
    ask: 'What is the mean of 31, 44 and 87?',
    actions: [calculation('a', 'mean(31, 44, 87)')],
    answer: 'The mean is $a.',
    expect: 'mean is 54',
  },
];
