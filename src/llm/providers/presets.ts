/**
 * Provider presets (L1): URL, key header, and deviations from the OpenAI format. Data only; `openai.ts` uses it. Other
 * unsupported fields are learned from the endpoint's answers.
 */
import { limits } from '../../domain/limits.ts';
import type { ModelProviderName } from '../../domain/manifests/model.ts';

/** Deviations of requests. Answers of all providers are parsed in the same way (`chunk.ts`). */
export interface ProviderQuirks {
  /** Supports `stream_options: {include_usage}`. Others report usage without it, or not at all. */
  readonly streamOptions: boolean;
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  /** Sent by default if the endpoint's own default is too short. */
  readonly defaultMaxTokens: number | null;
  /** Higher temperatures are rejected. */
  readonly maxTemperature: number;
  /** Ids of native calls: any, or exactly nine letters and digits. */
  readonly callIds: 'any' | 'nine';
  /** Whether a user message may directly follow a `tool` message. */
  readonly userAfterTool: boolean;
  readonly attachments: AttachmentQuirks;
  /** Includes loading a local model into memory. */
  readonly firstTokenMs: number;
}

/** How an endpoint takes images and files of user messages (C2). What else there is becomes a text placeholder. */
export interface AttachmentQuirks {
  /** `image_url` with a data URL: an object `{url}`, or the URL itself. */
  readonly images: 'object' | 'string';
  readonly imageTypes: readonly string[];
  /** PDFs: OpenAI's `file` part, Mistral's `document_url`, or null for none. */
  readonly files: 'file' | 'document_url' | null;
  readonly fileTypes: readonly string[];
  /** In one request: number, bytes before base64, and bytes of one. */
  readonly most: number;
  readonly bytes: number;
  readonly bytesEach: number;
}

export interface Preset {
  readonly title: string;
  /** Null if the user must configure the URL; `example` shows its form. */
  readonly baseUrl: string | null;
  readonly example: string;
  /** Hosts that identify the provider; `host` or `host:port`. */
  readonly hosts: readonly string[];
  /** The header for the key; null means that the endpoint needs no key. */
  readonly keyHeader: 'authorization' | 'cf-aig-authorization' | null;
  /** Runs on the local machine; tokens are free. */
  readonly local: boolean;
  readonly quirks: ProviderQuirks;
}

const PNG_JPEG = ['image/png', 'image/jpeg'] as const;
const PDF = ['application/pdf'] as const;

/** Whether the model has vision is not known: an endpoint that refuses images gets the request again without them. */
const IMAGES: AttachmentQuirks = {
  images: 'object',
  imageTypes: [...PNG_JPEG, 'image/webp', 'image/gif'],
  files: null,
  fileTypes: [],
  most: limits.attachmentsPerRequest,
  bytes: limits.attachmentBytesPerRequest,
  bytesEach: limits.attachmentBytesPerRequest,
};
const IMAGES_AND_PDF: AttachmentQuirks = { ...IMAGES, files: 'file', fileTypes: PDF };

/** An unknown endpoint. */
export const GENERIC: ProviderQuirks = {
  streamOptions: true,
  maxTokensField: 'max_tokens',
  defaultMaxTokens: null,
  maxTemperature: 2,
  callIds: 'any',
  userAfterTool: true,
  attachments: IMAGES,
  firstTokenMs: limits.firstTokenMs,
};

const LOCAL: ProviderQuirks = { ...GENERIC, firstTokenMs: limits.localFirstTokenMs };

type Named = Exclude<ModelProviderName, 'demo'>;

export const PRESETS: Readonly<Record<Named, Preset>> = {
  openai: {
    title: 'OpenAI',
    baseUrl: 'https://api.openai.com/v1',
    example: 'https://api.openai.com/v1',
    hosts: ['api.openai.com'],
    keyHeader: 'authorization',
    local: false,
    // Its reasoning models reject `max_tokens`; all of its models accept the newer field.
    quirks: { ...GENERIC, maxTokensField: 'max_completion_tokens', attachments: IMAGES_AND_PDF },
  },
  anthropic: {
    title: 'Anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    example: 'https://api.anthropic.com/v1',
    hosts: ['api.anthropic.com'],
    keyHeader: 'authorization',
    local: false,
    quirks: {
      ...GENERIC,
      defaultMaxTokens: 8_192,
      maxTemperature: 1,
      // 5 MB of base64 for each image. The compatible endpoint ignores `file` parts.
      attachments: { ...IMAGES, bytesEach: 3_750_000 },
    },
  },
  gemini: {
    title: 'Google Gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    example: 'https://generativelanguage.googleapis.com/v1beta/openai',
    hosts: ['generativelanguage.googleapis.com'],
    keyHeader: 'authorization',
    local: false,
    quirks: {
      ...GENERIC,
      attachments: {
        ...IMAGES,
        imageTypes: [...PNG_JPEG, 'image/webp', 'image/heic', 'image/heif'],
        bytesEach: 7_000_000,
      },
    },
  },
  groq: {
    title: 'Groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    example: 'https://api.groq.com/openai/v1',
    hosts: ['api.groq.com'],
    keyHeader: 'authorization',
    local: false,
    // Five images, and 4 MB of base64 with the rest of the request.
    quirks: {
      ...GENERIC,
      maxTokensField: 'max_completion_tokens',
      attachments: { ...IMAGES, most: 5, bytes: 2_800_000, bytesEach: 2_800_000 },
    },
  },
  mistral: {
    title: 'Mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    example: 'https://api.mistral.ai/v1',
    hosts: ['api.mistral.ai'],
    keyHeader: 'authorization',
    local: false,
    // It rejects unknown fields, and reports usage in the last chunk in any case.
    quirks: {
      ...GENERIC,
      streamOptions: false,
      maxTemperature: 1.5,
      callIds: 'nine',
      userAfterTool: false,
      attachments: { ...IMAGES, images: 'string', files: 'document_url', fileTypes: PDF, most: 8 },
    },
  },
  deepseek: {
    title: 'DeepSeek',
    baseUrl: 'https://api.deepseek.com/v1',
    example: 'https://api.deepseek.com/v1',
    hosts: ['api.deepseek.com'],
    keyHeader: 'authorization',
    local: false,
    quirks: GENERIC,
  },
  openrouter: {
    title: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    example: 'https://openrouter.ai/api/v1',
    hosts: ['openrouter.ai'],
    keyHeader: 'authorization',
    local: false,
    // It converts PDFs for models that cannot read them.
    quirks: { ...GENERIC, attachments: IMAGES_AND_PDF },
  },
  xai: {
    title: 'xAI',
    baseUrl: 'https://api.x.ai/v1',
    example: 'https://api.x.ai/v1',
    hosts: ['api.x.ai'],
    keyHeader: 'authorization',
    local: false,
    quirks: { ...GENERIC, attachments: { ...IMAGES, imageTypes: PNG_JPEG } },
  },
  'workers-ai': {
    title: 'Workers AI',
    baseUrl: null,
    example: 'https://api.cloudflare.com/client/v4/accounts/ACCOUNT_ID/ai/v1',
    hosts: ['api.cloudflare.com'],
    keyHeader: 'authorization',
    local: false,
    // Most of its models stop after 256 tokens by default.
    quirks: { ...GENERIC, defaultMaxTokens: 4_096 },
  },
  'ai-gateway': {
    title: 'AI Gateway',
    baseUrl: null,
    example: 'https://gateway.ai.cloudflare.com/v1/ACCOUNT_ID/GATEWAY_ID/compat',
    hosts: ['gateway.ai.cloudflare.com'],
    // The gateway's own key; it stores the providers' keys.
    keyHeader: 'cf-aig-authorization',
    local: false,
    quirks: GENERIC,
  },
  ollama: {
    title: 'Ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    example: 'http://127.0.0.1:11434/v1',
    hosts: ['127.0.0.1:11434', 'localhost:11434'],
    keyHeader: null,
    local: true,
    quirks: { ...LOCAL, attachments: { ...IMAGES, imageTypes: [...PNG_JPEG, 'image/webp'] } },
  },
  vllm: {
    title: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    example: 'http://127.0.0.1:8000/v1',
    hosts: ['127.0.0.1:8000', 'localhost:8000'],
    keyHeader: 'authorization',
    local: true,
    quirks: LOCAL,
  },
  'llama.cpp': {
    title: 'llama.cpp server',
    baseUrl: 'http://127.0.0.1:8080/v1',
    example: 'http://127.0.0.1:8080/v1',
    hosts: ['127.0.0.1:8080', 'localhost:8080'],
    keyHeader: 'authorization',
    local: true,
    // It decodes images with stb_image, which has no WebP.
    quirks: { ...LOCAL, attachments: { ...IMAGES, imageTypes: [...PNG_JPEG, 'image/gif'] } },
  },
};

export const PRESET_NAMES = Object.keys(PRESETS) as readonly Named[];

export function isPresetName(name: string): name is Named {
  return Object.hasOwn(PRESETS, name);
}

/** The preset for a URL, or null for an unknown compatible endpoint. */
export function presetAt(baseUrl: string): Named | null {
  if (!URL.canParse(baseUrl)) return null;
  const { host } = new URL(baseUrl);
  return PRESET_NAMES.find((name) => PRESETS[name].hosts.includes(host)) ?? null;
}
