/* catalog.c - the names that `pull` knows, from models/catalog.txt (the Makefile turns its lines into rows). */
#include "fetch/fetch.h"

static const tg_catalog_entry entries[] = {
#include "fetch/catalog.inc"
};

bool tg_catalog_get(size_t i, tg_catalog_entry *entry)
{
    if (i >= sizeof entries / sizeof *entries)
        return false;
    *entry = entries[i];
    return true;
}
