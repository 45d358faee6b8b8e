target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@blocked.As = internal addrspace(3) global [256 x float] undef, align 16
@blocked.Bs = internal addrspace(3) global [256 x float] undef, align 16

define ptx_kernel void @blocked(ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(3072) %A, ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(3072) %B, ptr addrspace(1) noalias writeonly align 4 nonnull dereferenceable(4096) %C) #0 {
entry:
  %sum = alloca [16 x float], align 16
  %ty.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.y(), !range !{i32 0, i32 8}
  %ty = zext i32 %ty.id to i64
  %tx.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 8}
  %tx = zext i32 %tx.id to i64
  br label %for.1.entry
for.1.entry:
  br label %for.1.head
for.1.head:
  %i = phi i64 [ 0, %for.1.entry ], [ %i.next, %for.1.latch ]
  %i.more = icmp slt i64 %i, 4
  br i1 %i.more, label %for.1.body, label %for.1.end
for.1.body:
  %.2 = mul i64 %i, 4
  %.3.at = getelementptr float, ptr %sum, i64 %.2
  store <4 x float> zeroinitializer, ptr %.3.at, align 16
  br label %for.1.latch
for.1.latch:
  %i.next = add i64 %i, 1
  br label %for.1.head
for.1.end:
  br label %for.4.entry
for.4.entry:
  br label %for.4.head
for.4.head:
  %s = phi i64 [ 0, %for.4.entry ], [ %s.next, %for.4.latch ]
  %s.more = icmp slt i64 %s, 3
  br i1 %s.more, label %for.4.body, label %for.4.end
for.4.body:
  call void @llvm.nvvm.barrier0()
  %.5 = mul i64 %s, 8
  %.6 = add i64 %.5, %ty
  %.7 = mul i64 %.6, 32
  %.8 = mul i64 %tx, 4
  %.9 = add i64 %.7, %.8
  %.10.at = getelementptr float, ptr addrspace(1) %A, i64 %.9
  %.10 = load <4 x float>, ptr addrspace(1) %.10.at, align 4
  %.11 = mul i64 %ty, 32
  %.12 = mul i64 %tx, 4
  %.13 = add i64 %.11, %.12
  %.14.at = getelementptr float, ptr addrspace(3) @blocked.As, i64 %.13
  store <4 x float> %.10, ptr addrspace(3) %.14.at, align 16
  %.15 = mul i64 %s, 8
  %.16 = add i64 %.15, %ty
  %.17 = mul i64 %.16, 32
  %.18 = mul i64 %tx, 4
  %.19 = add i64 %.17, %.18
  %.20.at = getelementptr float, ptr addrspace(1) %B, i64 %.19
  %.20 = load <4 x float>, ptr addrspace(1) %.20.at, align 4
  %.21 = mul i64 %ty, 32
  %.22 = mul i64 %tx, 4
  %.23 = add i64 %.21, %.22
  %.24.at = getelementptr float, ptr addrspace(3) @blocked.Bs, i64 %.23
  store <4 x float> %.20, ptr addrspace(3) %.24.at, align 16
  call void @llvm.nvvm.barrier0()
  br label %for.25.entry
for.25.entry:
  br label %for.25.head
for.25.head:
  %r = phi i64 [ 0, %for.25.entry ], [ %r.next, %for.25.latch ]
  %r.more = icmp slt i64 %r, 8
  br i1 %r.more, label %for.25.body, label %for.25.end
for.25.body:
  %.26 = mul i64 %r, 32
  %.27 = mul i64 %tx, 4
  %.28 = add i64 %.26, %.27
  %.29.at = getelementptr float, ptr addrspace(3) @blocked.Bs, i64 %.28
  %.29 = load <4 x float>, ptr addrspace(3) %.29.at, align 16
  br label %for.30.entry
for.30.entry:
  br label %for.30.head
for.30.head:
  %i.1 = phi i64 [ 0, %for.30.entry ], [ %i.1.next, %for.30.latch ]
  %i.1.more = icmp slt i64 %i.1, 4
  br i1 %i.1.more, label %for.30.body, label %for.30.end
for.30.body:
  %.31 = mul i64 %r, 32
  %.32 = mul i64 %ty, 4
  %.33 = add i64 %.31, %.32
  %.34 = add i64 %.33, %i.1
  %.35.at = getelementptr float, ptr addrspace(3) @blocked.As, i64 %.34
  %.35 = load float, ptr addrspace(3) %.35.at, align 4
  %.36.lane = insertelement <4 x float> poison, float %.35, i64 0
  %.36 = shufflevector <4 x float> %.36.lane, <4 x float> poison, <4 x i32> zeroinitializer
  %.37 = mul i64 %i.1, 4
  %.38.at = getelementptr float, ptr %sum, i64 %.37
  %.38 = load <4 x float>, ptr %.38.at, align 16
  %.39 = call <4 x float> @llvm.fma.v4f32(<4 x float> %.36, <4 x float> %.29, <4 x float> %.38)
  %.40 = mul i64 %i.1, 4
  %.41.at = getelementptr float, ptr %sum, i64 %.40
  store <4 x float> %.39, ptr %.41.at, align 16
  br label %for.30.latch
for.30.latch:
  %i.1.next = add i64 %i.1, 1
  br label %for.30.head
for.30.end:
  br label %for.25.latch
for.25.latch:
  %r.next = add i64 %r, 1
  br label %for.25.head
for.25.end:
  br label %for.4.latch
for.4.latch:
  %s.next = add i64 %s, 1
  br label %for.4.head
for.4.end:
  br label %for.42.entry
for.42.entry:
  br label %for.42.head
for.42.head:
  %i.2 = phi i64 [ 0, %for.42.entry ], [ %i.2.next, %for.42.latch ]
  %i.2.more = icmp slt i64 %i.2, 4
  br i1 %i.2.more, label %for.42.body, label %for.42.end
for.42.body:
  %.43 = mul i64 %i.2, 4
  %.44.at = getelementptr float, ptr %sum, i64 %.43
  %.44 = load <4 x float>, ptr %.44.at, align 16
  %.45 = mul i64 %ty, 4
  %.46 = add i64 %.45, %i.2
  %.47 = mul i64 %.46, 32
  %.48 = mul i64 %tx, 4
  %.49 = add i64 %.47, %.48
  %.50.at = getelementptr float, ptr addrspace(1) %C, i64 %.49
  store <4 x float> %.44, ptr addrspace(1) %.50.at, align 4
  br label %for.42.latch
for.42.latch:
  %i.2.next = add i64 %i.2, 1
  br label %for.42.head
for.42.end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @blocked, !"maxntidx", i32 8, !"maxntidy", i32 8, !"maxntidz", i32 1}
