/**
 * Fifty calls of the shipped tools, grouped in turns as a model would write them.
 *
 * Each has the attributes that the prompt teaches for its position: an id if something refers to the
 * action, `async` if it runs in parallel with others of its turn, `depends_on` if it waits without a
 * reference.
 */
import type { ShownAction } from '../../src/protocol/prompt/examples.ts';

export interface Turn {
  readonly user: string;
  readonly calls: readonly ShownAction[];
}

const PRESS_RELEASE =
  'The city council approved a new network of protected cycle lanes on Tuesday. Work begins in March and is expected to take eighteen months. Residents along the route will be consulted before each section is closed to traffic.';
const REVIEW =
  "I've owned this kettle for three weeks. It boils fast, it looks good on the counter, and the handle stays cool. The lid, though, is far too stiff to open with wet hands.";

export const TURNS: readonly Turn[] = [
  {
    user: 'What is 17% of 2,340?',
    calls: [{ name: 'calculator', id: 'share', parameters: { expression: '2340 * 0.17' } }],
  },
  {
    user: 'Monthly payment on a 300,000 loan at 3.5% over 30 years, and the total interest?',
    calls: [
      {
        name: 'calculator',
        id: 'payment',
        mode: 'async',
        parameters: { expression: '300000 * (0.035/12) / (1 - (1 + 0.035/12)^(-360))' },
      },
      {
        name: 'calculator',
        id: 'interest',
        mode: 'async',
        parameters: { expression: '$payment * 360 - 300000' },
      },
    ],
  },
  {
    user: 'Is the diagonal of a 16 by 9 metre screen longer than 18 metres?',
    calls: [{ name: 'calculator', parameters: { expression: 'sqrt(16^2 + 9^2)' } }],
  },
  {
    user: 'Compare 2^64, 20! and 10^19.',
    calls: [
      { name: 'calculator', id: 'power', mode: 'async', parameters: { expression: '2^64' } },
      { name: 'calculator', id: 'factorial', mode: 'async', parameters: { expression: 'factorial(20)' } },
      { name: 'calculator', id: 'ten', mode: 'async', parameters: { expression: '10^19' } },
    ],
  },
  {
    user: 'Mean and spread of 12.4, 11.9, 13.1 and 12.8.',
    calls: [
      { name: 'calculator', id: 'mean', mode: 'async', parameters: { expression: 'mean(12.4, 11.9, 13.1, 12.8)' } },
      {
        name: 'calculator',
        id: 'spread',
        mode: 'async',
        parameters: { expression: 'max(12.4, 11.9, 13.1, 12.8) - min(12.4, 11.9, 13.1, 12.8)' },
      },
    ],
  },
  {
    user: 'How far is it from Berlin to Lisbon as the crow flies?',
    calls: [
      {
        name: 'calculator',
        parameters: {
          expression:
            '6371 * acos(sin(52.52*pi/180)*sin(38.72*pi/180) + cos(52.52*pi/180)*cos(38.72*pi/180)*cos((13.40+9.14)*pi/180))',
        },
      },
    ],
  },
  {
    user: 'What does the example domain say?',
    calls: [{ name: 'web_fetch', id: 'page', parameters: { url: 'https://example.com/' } }],
  },
  {
    user: 'Read the Wikipedia articles on Ada Lovelace, Charles Babbage and the Analytical Engine.',
    calls: [
      { name: 'web_fetch', mode: 'async', parameters: { url: 'https://en.wikipedia.org/wiki/Ada_Lovelace' } },
      { name: 'web_fetch', mode: 'async', parameters: { url: 'https://en.wikipedia.org/wiki/Charles_Babbage' } },
      {
        name: 'web_fetch',
        mode: 'async',
        parameters: { url: 'https://en.wikipedia.org/wiki/Analytical_engine', max_chars: 20000 },
      },
    ],
  },
  {
    user: 'Which version of TypeScript is the newest on npm?',
    calls: [
      {
        name: 'web_fetch',
        id: 'registry',
        mode: 'async',
        parameters: {
          url: 'https://packages.example.com/typescript/latest',
          headers: { Accept: 'application/json' },
        },
      },
      {
        name: 'json_query',
        id: 'version',
        mode: 'async',
        parameters: { data: '$registry.json', query: 'version' },
      },
    ],
  },
  {
    user: 'Are both mirrors up?',
    calls: [
      { name: 'web_fetch', mode: 'async', parameters: { url: 'https://deb.debian.org/debian/', method: 'HEAD' } },
      { name: 'web_fetch', mode: 'async', parameters: { url: 'https://archive.ubuntu.com/ubuntu/', method: 'HEAD' } },
    ],
  },
  {
    user: 'Show me the raw HTML of the login page.',
    calls: [
      {
        name: 'web_fetch',
        parameters: { url: 'https://intranet.example.org/login?next=%2Fhome', max_chars: 8000, raw: true },
      },
    ],
  },
  {
    user: 'Was regnet es morgen in Hamburg?',
    calls: [
      {
        name: 'web_fetch',
        id: 'wetter',
        mode: 'async',
        parameters: {
          url: 'https://api.open-meteo.com/v1/forecast?latitude=53.55&longitude=9.99&daily=precipitation_sum&timezone=Europe%2FBerlin',
          headers: { 'Accept-Language': 'de' },
        },
      },
      {
        name: 'json_query',
        id: 'regen',
        mode: 'async',
        parameters: { data: '$wetter.json', query: 'daily.precipitation_sum[1]' },
      },
    ],
  },
  {
    user: 'What are the top stories on Hacker News?',
    calls: [
      {
        name: 'web_extract',
        id: 'stories',
        parameters: {
          url: 'https://news.ycombinator.com/',
          selectors: { titles: '.titleline > a', scores: '.score' },
        },
      },
    ],
  },
  {
    user: 'Compare the headings of these two documentation pages.',
    calls: [
      {
        name: 'web_extract',
        mode: 'async',
        parameters: { url: 'https://docs.python.org/3/library/asyncio.html', selectors: ['h1', 'h2', 'h3'] },
      },
      {
        name: 'web_extract',
        mode: 'async',
        parameters: { url: 'https://doc.rust-lang.org/book/ch17-00-async-await.html', selectors: ['h1', 'h2', 'h3'] },
      },
    ],
  },
  {
    user: 'List every link on the press page.',
    calls: [{ name: 'web_extract', parameters: { url: 'https://www.example.org/press', links: true } }],
  },
  {
    user: 'Price, rating and stock of this product, please.',
    calls: [
      {
        name: 'web_extract',
        id: 'product',
        parameters: {
          url: 'https://shop.example.com/products/4711-trail-running-shoe',
          selectors: {
            name: 'h1.product-title',
            price: '[itemprop=price]',
            rating: '.rating .average',
            stock: '.availability',
          },
          max_chars: 4000,
        },
      },
    ],
  },
  {
    user: 'Collect the abstracts of these papers.',
    calls: [
      {
        name: 'web_extract',
        id: 'attention',
        mode: 'async',
        parameters: { url: 'https://arxiv.org/abs/1706.03762', selectors: { abstract: 'blockquote.abstract' } },
      },
      {
        name: 'web_extract',
        id: 'scaling',
        mode: 'async',
        parameters: { url: 'https://arxiv.org/abs/2001.08361', selectors: { abstract: 'blockquote.abstract' } },
      },
      {
        name: 'web_extract',
        id: 'chinchilla',
        mode: 'async',
        parameters: { url: 'https://arxiv.org/abs/2203.15556', selectors: { abstract: 'blockquote.abstract' } },
      },
      {
        name: 'text_stats',
        id: 'words',
        mode: 'async',
        parameters: { text: '$attention.matches.abstract[0]', top: 5 },
      },
    ],
  },
  {
    user: 'Which of these items cost more than 10?',
    calls: [
      {
        name: 'json_query',
        id: 'dear',
        parameters: {
          data: {
            items: [
              { name: 'pen', price: 2.5 },
              { name: 'lamp', price: 24 },
              { name: 'chair', price: 89.9 },
            ],
          },
          query: 'items[?price > `10`].name | sort(@)',
        },
      },
    ],
  },
  {
    user: 'From the orders: total, number, and the customers without an email.',
    calls: [
      { name: 'json_query', id: 'total', mode: 'async', parameters: { data: '$orders', query: 'sum([].amount)' } },
      { name: 'json_query', id: 'number', mode: 'async', parameters: { data: '$orders', query: 'length(@)' } },
      {
        name: 'json_query',
        id: 'unreachable',
        mode: 'async',
        parameters: { data: '$orders', query: '[?customer.email == null].customer.{id: id, name: name}' },
      },
    ],
  },
  {
    user: 'Get the name and the stars of the ten most starred repositories from this answer.',
    calls: [
      {
        name: 'json_query',
        parameters: {
          data: '$search.json',
          query: 'reverse(sort_by(items, &stargazers_count))[:10].{name: full_name, stars: stargazers_count}',
        },
      },
    ],
  },
  {
    user: `How readable is this? ${PRESS_RELEASE}`,
    calls: [{ name: 'text_stats', id: 'stats', parameters: { text: PRESS_RELEASE } }],
  },
  {
    user: 'Compare both reviews.',
    calls: [
      { name: 'text_stats', mode: 'async', parameters: { text: REVIEW, top: 5 } },
      {
        name: 'text_stats',
        mode: 'async',
        parameters: {
          text: '¡Me encanta! Llegó en dos días, funciona perfectamente y hace muy poco ruido.',
          top: 5,
          ignore: ['y', 'en', 'muy'],
        },
      },
    ],
  },
  {
    user: 'How long would it take to read the page aloud?',
    calls: [
      {
        name: 'text_stats',
        id: 'reading',
        parameters: { text: '$page.text', words_per_minute: 150 },
      },
    ],
  },
  {
    user: 'Say hello.',
    calls: [{ name: 'echo', parameters: { message: 'hello' } }],
  },
  {
    user: 'Wait for two and three seconds side by side, then tell me.',
    calls: [
      { name: 'echo', id: 'two', mode: 'async', parameters: { message: 'waited 2 s', delay_ms: 2000 } },
      { name: 'echo', id: 'three', mode: 'async', parameters: { message: 'waited 3 s', delay_ms: 3000 } },
      {
        name: 'echo',
        id: 'done',
        mode: 'async',
        dependsOn: ['two', 'three'],
        parameters: { message: 'both are over' },
      },
    ],
  },
  {
    user: 'Try something that fails at first.',
    calls: [{ name: 'echo', parameters: { message: 'made it', fail_times: 2 } }],
  },
  {
    user: 'Draft the status update as JSON.',
    calls: [
      {
        name: 'echo',
        id: 'draft',
        parameters: {
          title: 'Weekly status',
          done: ['migrated billing', 'closed 14 tickets'],
          next: ['load test', 'invoice export'],
          risk: 'low',
        },
      },
    ],
  },
  {
    user: 'How many seconds are there in a leap year, and how many weeks?',
    calls: [
      { name: 'calculator', mode: 'async', parameters: { expression: '366 * 24 * 60 * 60' } },
      { name: 'calculator', mode: 'async', parameters: { expression: 'round(366 / 7, 2)' } },
    ],
  },
  {
    user: 'Convert 98.6 degrees Fahrenheit and 65 miles per hour.',
    calls: [
      { name: 'calculator', id: 'celsius', mode: 'async', parameters: { expression: '(98.6 - 32) * 5 / 9' } },
      { name: 'calculator', id: 'speed', mode: 'async', parameters: { expression: '65 * 1.609344' } },
    ],
  },
  {
    user: 'Which of my colleagues in this list is the oldest? {"team":[{"name":"Ines","born":1984},{"name":"Tomas","born":1979}]}',
    calls: [
      {
        name: 'json_query',
        id: 'oldest',
        parameters: {
          data: {
            team: [
              { name: 'Ines', born: 1984 },
              { name: 'Tomas', born: 1979 },
            ],
          },
          query: 'min_by(team, &born).name',
        },
      },
    ],
  },
];

export const CALLS: readonly ShownAction[] = TURNS.flatMap(({ calls }) => calls);
