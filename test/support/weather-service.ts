/** The outside world of the code tools under test: a weather service that requires a key. */
let asked = 0;

export function weatherService(request: { readonly url: string; readonly headers: Pick<Headers, 'get'> }): Response {
  const url = new URL(request.url);
  if (url.hostname !== 'weather.example') return new Response('no such host', { status: 502 });
  if (request.headers.get('authorization') !== 'Bearer weather-key') return new Response('who?', { status: 401 });
  const city = url.searchParams.get('city');
  if (city === 'Atlantis') return new Response('unknown', { status: 404 });
  asked += 1;
  if (city === 'Busytown' && asked % 2 === 1) return new Response('later', { status: 503 });
  return Response.json({ temperature: 7.5, conditions: 'rain' });
}
