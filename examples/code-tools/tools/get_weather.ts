import { defineTool, ToolError } from 'cortex-edge';
import { z } from 'zod';

const answer = z.object({ temperature: z.number(), conditions: z.string() });

export default defineTool({
  name: 'get_weather',
  description: 'The current weather of a city.',
  parameters: z.object({ city: z.string().min(1).max(100) }),
  effects: 'idempotent',
  async run({ city }, { fetch, secrets }) {
    const url = new URL('https://weather.example/v1/current');
    url.searchParams.set('city', city);
    const response = await fetch(url, { headers: { authorization: `Bearer ${secrets['TOOL_WEATHER_KEY']}` } });
    if (response.status === 404) throw new ToolError(`No weather is known for "${city}"`, { code: 'unknown_city' });
    if (!response.ok) {
      // A server that is busy may answer later. A refused key stays refused.
      const retryable = response.status === 429 || response.status >= 500;
      throw new ToolError(`The weather service answered ${response.status}`, {
        code: 'weather_unavailable',
        retryable,
      });
    }
    const { temperature, conditions } = answer.parse(await response.json());
    return { city, celsius: temperature, conditions };
  },
});
