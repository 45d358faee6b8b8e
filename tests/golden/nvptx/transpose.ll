target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@transpose.T = internal addrspace(3) global [272 x float] undef, align 16

define ptx_kernel void @transpose(ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(6144) %A, ptr addrspace(1) noalias writeonly align 4 nonnull dereferenceable(6144) %B) #0 {
entry:
  %by.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y(), !range !{i32 0, i32 2}
  %by = zext i32 %by.id to i64
  %bx.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 3}
  %bx = zext i32 %bx.id to i64
  %ty.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.y(), !range !{i32 0, i32 4}
  %ty = zext i32 %ty.id to i64
  %tx.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 16}
  %tx = zext i32 %tx.id to i64
  br label %for.1.entry
for.1.entry:
  br label %for.1.head
for.1.head:
  %r = phi i64 [ 0, %for.1.entry ], [ %r.next, %for.1.latch ]
  %r.more = icmp slt i64 %r, 4
  br i1 %r.more, label %for.1.body, label %for.1.end
for.1.body:
  %.2 = mul i64 %by, 16
  %.3 = mul i64 %r, 4
  %.4 = add i64 %.2, %.3
  %.5 = add i64 %.4, %ty
  %.6 = mul i64 %.5, 48
  %.7 = mul i64 %bx, 16
  %.8 = add i64 %.6, %.7
  %.9 = add i64 %.8, %tx
  %.10.at = getelementptr float, ptr addrspace(1) %A, i64 %.9
  %.10 = load float, ptr addrspace(1) %.10.at, align 4
  %.11 = mul i64 %r, 4
  %.12 = add i64 %.11, %ty
  %.13 = mul i64 %.12, 17
  %.14 = add i64 %.13, %tx
  %.15.at = getelementptr float, ptr addrspace(3) @transpose.T, i64 %.14
  store float %.10, ptr addrspace(3) %.15.at, align 4
  br label %for.1.latch
for.1.latch:
  %r.next = add i64 %r, 1
  br label %for.1.head
for.1.end:
  call void @llvm.nvvm.barrier0()
  br label %for.16.entry
for.16.entry:
  br label %for.16.head
for.16.head:
  %r.1 = phi i64 [ 0, %for.16.entry ], [ %r.1.next, %for.16.latch ]
  %r.1.more = icmp slt i64 %r.1, 4
  br i1 %r.1.more, label %for.16.body, label %for.16.end
for.16.body:
  %.17 = mul i64 %tx, 17
  %.18 = mul i64 %r.1, 4
  %.19 = add i64 %.17, %.18
  %.20 = add i64 %.19, %ty
  %.21.at = getelementptr float, ptr addrspace(3) @transpose.T, i64 %.20
  %.21 = load float, ptr addrspace(3) %.21.at, align 4
  %.22 = mul i64 %bx, 16
  %.23 = mul i64 %r.1, 4
  %.24 = add i64 %.22, %.23
  %.25 = add i64 %.24, %ty
  %.26 = mul i64 %.25, 32
  %.27 = mul i64 %by, 16
  %.28 = add i64 %.26, %.27
  %.29 = add i64 %.28, %tx
  %.30.at = getelementptr float, ptr addrspace(1) %B, i64 %.29
  store float %.21, ptr addrspace(1) %.30.at, align 4
  br label %for.16.latch
for.16.latch:
  %r.1.next = add i64 %r.1, 1
  br label %for.16.head
for.16.end:
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
!0 = !{ptr @transpose, !"maxntidx", i32 16, !"maxntidy", i32 4, !"maxntidz", i32 1}
