/* SPDX-License-Identifier: MIT */
/* Part of libgcc_s.so.1 for musl (musl.sh). The unwinder that Debian's GCC has for glibc finds the table of an object
 * by _dl_find_object, which musl lacks. musl has dl_iterate_phdr. */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* struct dl_find_object of glibc on x86-64. */
struct FoundObject
{
    unsigned long long flags;
    void* start;
    void* end;
    struct link_map* map;
    void* frames;
    unsigned long long reserved[7];
};

struct Search
{
    uintptr_t address;
    struct FoundObject* found;
};

static int LookInto(struct dl_phdr_info* object, size_t size, void* state)
{
    struct Search* search = state;
    uintptr_t start = UINTPTR_MAX;
    uintptr_t end = 0;
    uintptr_t frames = 0;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++)
    {
        const ElfW(Phdr)* header = &object->dlpi_phdr[i];
        uintptr_t address = object->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD)
        {
            start = address < start ? address : start;
            end = address + header->p_memsz > end ? address + header->p_memsz : end;
        }
        else if (header->p_type == PT_GNU_EH_FRAME)
        {
            frames = address;
        }
    }
    if (search->address < start || search->address >= end || frames == 0)
    {
        return 0;
    }
    *search->found = (struct FoundObject){.start = (void*)start, .end = (void*)end, .frames = (void*)frames};
    return 1;
}

/* Returns 0 if an object contains the address, otherwise -1. */
int _dl_find_object(void* address, struct FoundObject* found)
{
    struct Search search = {(uintptr_t)address, found};
    return dl_iterate_phdr(LookInto, &search) == 1 ? 0 : -1;
}
