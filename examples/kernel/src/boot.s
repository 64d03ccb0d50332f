# Entry of the kernel, by PVH (QEMU -kernel) or by Multiboot2 (GRUB).
# Both leave the CPU in 32-bit protected mode without paging, with the address of their boot information in EBX.

.section .boot.multiboot2, "a"
.balign 8
multiboot2_start:
    .long 0xe85250d6, 0, multiboot2_end - multiboot2_start
    .long -(0xe85250d6 + (multiboot2_end - multiboot2_start))
    # Address tag: tells the loader of .bss and the stacks, which are in no segment, so that it puts nothing of its own there.
    .short 2, 0
    .long 24, multiboot2_start, image_start, data_load_end, kernel_end
    # Entry tag.
    .short 3, 0
    .long 12, multiboot2_entry
    .balign 8
    # Framebuffer tag, optional: a picture to draw on, of this size if it can be had. Without one there is text.
    .short 5, 1
    .long 20, 1024, 768, 32
    .balign 8
    .short 0, 0
    .long 8
multiboot2_end:

.section .note.pvh, "a", @note
.balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad pvh_entry

.section .boot.text, "ax"
.code32
.globl pvh_entry
pvh_entry:
    movl $1, %ebp
    jmp 1f
multiboot2_entry:
    movl %eax, %ebp
1:  cli
    cld

    # Clear .bss, and copy .data to where it lives: only here, never after S3.
    movl $bss_start, %edi
    movl $bss_end, %ecx
    subl %edi, %ecx
    shrl $2, %ecx
    xorl %eax, %eax
    rep stosl
    movl $data_load, %esi
    movl $data_start, %edi
    movl $data_end, %ecx
    subl %edi, %ecx
    rep movsb

    # Identity map of 4 GiB. Leaf entries are global, as most kernels have them: the crate's flushes have to reach those too.
    # First 2 MiB in 4 KiB pages: a large page over fixed ranges of different types has no defined type.
    movl $boot_pt, %edi
    movl $0x103, %eax               # present, writable, global
    movl $512, %ecx
1:  movl %eax, (%edi)
    addl $0x1000, %eax
    addl $8, %edi
    loop 1b
    # The rest in 2 MiB pages; the last GiB, where devices live, uncached (PCD and PWT: PAT slot 3, UC in every layout here).
    movl $boot_pd, %edi
    movl $0x183, %eax               # present, writable, large, global
    movl $2048, %ecx
1:  cmpl $512, %ecx
    jne 2f
    orl $0x18, %eax
2:  movl %eax, (%edi)
    addl $0x200000, %eax
    addl $8, %edi
    loop 1b
    movl $(boot_pt + 3), boot_pd
    movl $(boot_pd + 0x0003), boot_pdpt
    movl $(boot_pd + 0x1003), boot_pdpt + 8
    movl $(boot_pd + 0x2003), boot_pdpt + 16
    movl $(boot_pd + 0x3003), boot_pdpt + 24
    movl $(boot_pdpt + 3), boot_pml4

    movl $0x6a0, %eax               # CR4: PAE, PGE, OSFXSR, OSXMMEXCPT
    movl %eax, %cr4
    movl $boot_pml4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          # EFER.LME
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    andl $~0xc, %eax                # EM and TS off
    orl $0x80010003, %eax           # PG, WP, MP, PE
    movl %eax, %cr0
    lgdt boot_gdtr
    ljmpl $0x18, $boot64

.code64
boot64:
    movl $0x20, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    movq $STACKS, %rsp
    addq stack_bytes(%rip), %rsp    # CPU 0 has the first stack
    movl %ebp, %edi
    movl %ebx, %esi
    xorl %ebp, %ebp
    call kernel_main
    ud2

# Null, 32-bit code, 32-bit data, 64-bit code, 64-bit data.
.balign 8
boot_gdt:
    .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff
boot_gdtr:
    .short boot_gdtr - boot_gdt - 1
    .long boot_gdt

.section .bss.paging, "aw", @nobits
.balign 4096
.globl boot_pml4
boot_pml4: .skip 4096
boot_pdpt: .skip 4096
boot_pd:   .skip 4 * 4096
boot_pt:   .skip 4096
