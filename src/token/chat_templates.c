/* chat_templates.c - templates for models that come without one: a row each, which tests render like any other. */
#include <stddef.h>

#include "tinygpt/tinygpt.h"

static const struct {
    const char *name, *text;
} templates[] = {
    {"chatml", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
               "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"},
    {"gemma", "{% if messages[0].role == 'system' %}{% set first = messages[0].content + '\n\n' %}"
              "{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
              "{{ bos_token }}{% for m in rest %}"
              "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' }}"
              "{{ (first if loop.first else '') + m.content | trim + '<end_of_turn>\n' }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"},
    {"llama2", "{% if messages[0].role == 'system' %}"
               "{% set first = '<<SYS>>\n' + messages[0].content + '\n<</SYS>>\n\n' %}{% set rest = messages[1:] %}"
               "{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}{% for m in rest %}"
               "{% if m.role == 'user' %}"
               "{{ bos_token + '[INST] ' + ((first if loop.first else '') + m.content) | trim + ' [/INST]' }}"
               "{% else %}{{ ' ' + m.content | trim + ' ' + eos_token }}{% endif %}{% endfor %}"},
    {"llama3", "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
               "{{ m.content | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}"
               "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"},
    {"mistral", "{% if messages[0].role == 'system' %}{% set first = messages[0].content + '\n\n' %}"
                "{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
                "{{ bos_token }}{% for m in rest %}{% if m.role == 'user' %}"
                "{{ '[INST] ' + (first if loop.first else '') + m.content + ' [/INST]' }}"
                "{% else %}{{ ' ' + m.content + eos_token }}{% endif %}{% endfor %}"},
    {"phi3", "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
             "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"},
    {"zephyr", "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content + eos_token }}{{ '\n' }}{% endfor %}"
               "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"},
};

const char *tg_chat_template(int i, const char **text)
{
    if (i < 0 || (size_t)i >= sizeof templates / sizeof *templates)
        return NULL;
    *text = templates[i].text;
    return templates[i].name;
}
