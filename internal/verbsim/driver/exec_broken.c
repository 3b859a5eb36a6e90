/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario is run by a thread that is not the first one and then executes a program
 * that the kernel gives up past the point of no return: the thread has the id of the
 * process by then, and ends with it by SIGSEGV.
 */
#define _GNU_SOURCE /* memfd_create */
#include "driver.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

/* Its segment has an address that no process can have. */
static int broken_program(void)
{
	const struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
	} file = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_EXEC,
			    .e_machine = MACHINE,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1 },
		.segment = { .p_type = PT_LOAD,
			     .p_flags = PF_R | PF_X,
			     .p_vaddr = -0x10000ull,
			     .p_filesz = sizeof(file),
			     .p_memsz = sizeof(file),
			     .p_align = 0x1000 },
	};
	int fd = memfd_create("broken", MFD_CLOEXEC);

	if (fd < 0 || write(fd, &file, sizeof(file)) != sizeof(file))
		return -1;
	return fd;
}

struct last_run {
	struct driver *d;
	const struct scenario *scenario;
};

static void *run_and_execute(void *argument)
{
	struct last_run *last = argument;
	struct driver *d = last->d;
	char *const none[] = { NULL };

	if (last->scenario->run(d) || !books_balance(d)) {
		fail(d, "the scenario could not be run");
		return NULL;
	}
	fexecve(broken_program(), none, none);
	fail(d, "executing a broken program: %s", strerror(errno));
	return NULL;
}

int run_to_broken_exec(struct driver *d, const struct scenario *scenario)
{
	struct last_run last = { d, scenario };
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_and_execute, &last))
		fail(d, "starting a thread failed");
	else
		pthread_join(thread, NULL);
	return 1; /* Nobody comes back from an exec that did what it is for. */
}
