/* folder.h - what the parts of the conversion of a Hugging Face folder share. */
#ifndef TG_CONVERT_FOLDER_H
#define TG_CONVERT_FOLDER_H

#include "base/newfile.h"
#include "convert/plan.h"
#include "model/weights.h"

/* Metadata of a GGUF: the configuration under the keys of architecture `to`, and the tokenizer. */
void tg_write_config(tg_gguf_writer *w, const tg_arch *to, const tg_config *c);
tg_status tg_write_tokenizer(tg_gguf_writer *w, const tg_container *in, int n_vocab, tg_error *err);

/* Reads the complete GGUF in `file`, and fails unless it is the model that the plan's folder holds: its
 * configuration, rotation included, its tensors' shapes, its tokenizer. What a GGUF cannot say is found here. */
tg_status tg_verify_folder(const tg_plan *plan, const tg_newfile *file, tg_error *err);

#endif
