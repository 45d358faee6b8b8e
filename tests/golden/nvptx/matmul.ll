target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@matmul.As = internal addrspace(3) global [256 x float] undef, align 16
@matmul.Bs = internal addrspace(3) global [256 x float] undef, align 16

define ptx_kernel void @matmul(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias readonly align 4 %B, ptr addrspace(1) noalias writeonly align 4 nonnull dereferenceable(4096) %C, i64 %k) #0 {
entry:
  %sum = alloca [1 x float], align 16
  %by.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y(), !range !{i32 0, i32 2}
  %by = zext i32 %by.id to i64
  %bx.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 2}
  %bx = zext i32 %bx.id to i64
  %ty.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.y(), !range !{i32 0, i32 16}
  %ty = zext i32 %ty.id to i64
  %tx.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 16}
  %tx = zext i32 %tx.id to i64
  %.1.at = getelementptr float, ptr %sum, i64 0
  store float 0x0000000000000000, ptr %.1.at, align 4
  %.2 = ashr i64 %k, 4
  br label %for.3.entry
for.3.entry:
  br label %for.3.head
for.3.head:
  %s = phi i64 [ 0, %for.3.entry ], [ %s.next, %for.3.latch ]
  %s.more = icmp slt i64 %s, %.2
  br i1 %s.more, label %for.3.body, label %for.3.end
for.3.body:
  call void @llvm.nvvm.barrier0()
  %.4 = mul i64 %by, 16
  %.5 = add i64 %.4, %ty
  %.6 = mul i64 %.5, %k
  %.7 = mul i64 %s, 16
  %.8 = add i64 %.6, %.7
  %.9 = add i64 %.8, %tx
  %.10.at = getelementptr float, ptr addrspace(1) %A, i64 %.9
  %.10 = load float, ptr addrspace(1) %.10.at, align 4
  %.11 = mul i64 %ty, 16
  %.12 = add i64 %.11, %tx
  %.13.at = getelementptr float, ptr addrspace(3) @matmul.As, i64 %.12
  store float %.10, ptr addrspace(3) %.13.at, align 4
  %.14 = mul i64 %s, 16
  %.15 = add i64 %.14, %ty
  %.16 = mul i64 %.15, 32
  %.17 = mul i64 %bx, 16
  %.18 = add i64 %.16, %.17
  %.19 = add i64 %.18, %tx
  %.20.at = getelementptr float, ptr addrspace(1) %B, i64 %.19
  %.20 = load float, ptr addrspace(1) %.20.at, align 4
  %.21 = mul i64 %ty, 16
  %.22 = add i64 %.21, %tx
  %.23.at = getelementptr float, ptr addrspace(3) @matmul.Bs, i64 %.22
  store float %.20, ptr addrspace(3) %.23.at, align 4
  call void @llvm.nvvm.barrier0()
  br label %for.24.entry
for.24.entry:
  br label %for.24.head
for.24.head:
  %r = phi i64 [ 0, %for.24.entry ], [ %r.next, %for.24.latch ]
  %r.more = icmp slt i64 %r, 16
  br i1 %r.more, label %for.24.body, label %for.24.end
for.24.body:
  %.25.at = getelementptr float, ptr %sum, i64 0
  %.25 = load float, ptr %.25.at, align 4
  %.26 = mul i64 %ty, 16
  %.27 = add i64 %.26, %r
  %.28.at = getelementptr float, ptr addrspace(3) @matmul.As, i64 %.27
  %.28 = load float, ptr addrspace(3) %.28.at, align 4
  %.29 = mul i64 %r, 16
  %.30 = add i64 %.29, %tx
  %.31.at = getelementptr float, ptr addrspace(3) @matmul.Bs, i64 %.30
  %.31 = load float, ptr addrspace(3) %.31.at, align 4
  %.32 = fmul float %.28, %.31
  %.33 = fadd float %.25, %.32
  %.34.at = getelementptr float, ptr %sum, i64 0
  store float %.33, ptr %.34.at, align 4
  br label %for.24.latch
for.24.latch:
  %r.next = add i64 %r, 1
  br label %for.24.head
for.24.end:
  br label %for.3.latch
for.3.latch:
  %s.next = add i64 %s, 1
  br label %for.3.head
for.3.end:
  %.35.at = getelementptr float, ptr %sum, i64 0
  %.35 = load float, ptr %.35.at, align 4
  %.36 = mul i64 %by, 16
  %.37 = add i64 %.36, %ty
  %.38 = mul i64 %.37, 32
  %.39 = mul i64 %bx, 16
  %.40 = add i64 %.38, %.39
  %.41 = add i64 %.40, %tx
  %.42.at = getelementptr float, ptr addrspace(1) %C, i64 %.41
  store float %.35, ptr addrspace(1) %.42.at, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @matmul, !"maxntidx", i32 16, !"maxntidy", i32 16, !"maxntidz", i32 1}
